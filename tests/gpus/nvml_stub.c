/* A stand-in for NVIDIA's libnvidia-ml.so.1: the symbols that our binding calls, with their real signatures.
 * What it says is told by the environment variable QM_NVML, words of the form name=number, read at each call.
 * With -DOLD it is a driver of 2018: no second version of the memory call, no third one of the process calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
       GPU_IS_LOST = 15, VERSION_MISMATCH = 18 };
#define GIB (1ULL << 30)
typedef unsigned long long u64;
typedef struct { int card, slot; } Device;
typedef struct { u64 total, free, used; } Memory;
typedef struct { unsigned version; u64 total, reserved, free, used; } Memory2;
typedef struct { unsigned gpu, memory; } Utilisation;
typedef struct { unsigned pid; u64 used; unsigned gpu_instance, compute_instance; } Process;
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } Pci;

static int opened = 0;
static Device cards[64], instances[64][8];

static long knob(const char *name, long otherwise)
{
    const char *text = getenv("QM_NVML"), *found = text ? strstr(text, name) : NULL;
    return found && found[strlen(name)] == '=' ? atol(found + strlen(name) + 1) : otherwise;
}
static int lost(Device *device) { return device->card == knob("lost", -1); }
static int figure(Device *device)
{
    if (!opened) return UNINITIALIZED;
    return lost(device) ? GPU_IS_LOST : (int) knob("figures", SUCCESS);
}

int nvmlInitWithFlags(unsigned flags)
{
    int code = (int) knob("init", SUCCESS);
    if (code == SUCCESS) opened++;
    return code;
}
int nvmlShutdown(void) { if (!opened) return UNINITIALIZED; opened--; return (int) knob("shutdown", SUCCESS); }
const char *nvmlErrorString(int code)
{
    switch (code) {
    case NOT_SUPPORTED: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case 9: return "Driver Not Loaded";
    case GPU_IS_LOST: return "GPU is lost";
    case VERSION_MISMATCH: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}
int nvmlDeviceGetCount_v2(unsigned *count)
{
    if (!opened) return UNINITIALIZED;
    *count = (unsigned) knob("devices", 1);
    return (int) knob("count", SUCCESS);
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device)
{
    cards[index].card = (int) index;
    cards[index].slot = -1;
    *device = &cards[index];
    return index == knob("unseen", -1) ? GPU_IS_LOST : SUCCESS;
}
static int memory(Device *device, u64 *total, u64 *reserved, u64 *unused)
{
    if (lost(device)) return GPU_IS_LOST;
    *total = (device->slot >= 0 ? 20 : 24) * GIB;
    *reserved = GIB / 2;
    *unused = (device->slot >= 0 ? 19 : 16) * GIB;
    if (knob("nonsense", 0)) *unused = ~0ULL;
    return (int) knob("memory", SUCCESS);
}
int nvmlDeviceGetMemoryInfo(Device *device, Memory *out)
{
    u64 reserved;
    int code = memory(device, &out->total, &reserved, &out->free);
    out->used = out->total - out->free;
    return code;
}
#ifndef OLD
int nvmlDeviceGetMemoryInfo_v2(Device *device, Memory2 *out)
{
    if (out->version != (sizeof(Memory2) | 2 << 24)) return 25;
    int code = memory(device, &out->total, &out->reserved, &out->free);
    out->used = out->total - out->free - out->reserved;
    return code;
}
#endif
int nvmlDeviceGetName(Device *device, char *name, unsigned length)
{
    if (knob("nonsense", 0)) return strcpy(name, "\xff\xfe\x01"), SUCCESS;
    snprintf(name, length, device->slot >= 0 ? "NVIDIA A100 MIG 3g.20gb" : "NVIDIA GeForce RTX 3090");
    return lost(device) ? GPU_IS_LOST : SUCCESS;
}
int nvmlDeviceGetUUID(Device *device, char *uuid, unsigned length)
{
    if (device->slot >= 0) snprintf(uuid, length, "MIG-%d-%d", device->card, device->slot);
    else snprintf(uuid, length, "GPU-%d", device->card);
    return SUCCESS;
}
int nvmlDeviceGetPciInfo_v3(Device *device, Pci *pci)
{
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", device->card + 1);
    return device->slot >= 0 ? NOT_SUPPORTED : SUCCESS;
}
int nvmlDeviceGetTemperature(Device *device, unsigned sensor, unsigned *celsius) { *celsius = 61; return figure(device); }
int nvmlDeviceGetUtilizationRates(Device *device, Utilisation *out)
{
    out->gpu = 97;
    out->memory = 40;
    return device->slot >= 0 || knob("mig", 0) ? NOT_SUPPORTED : figure(device);
}
int nvmlDeviceGetPowerUsage(Device *device, unsigned *milliwatts) { *milliwatts = 287500; return figure(device); }
static int processes(Device *device, unsigned *count, Process *out, unsigned first, unsigned number)
{
    if (knob("processes", SUCCESS) != SUCCESS) return (int) knob("processes", SUCCESS);
    if (!number) return *count = 0, SUCCESS;
    if (!out || *count < number) return *count = number, INSUFFICIENT_SIZE;
    for (unsigned position = 0; position < number; position++) {
        memset(&out[position], 0, sizeof *out);
        out[position].pid = first + position;
        out[position].used = knob("wddm", 0) ? ~0ULL : (position + 1) * GIB;
    }
    return *count = number, SUCCESS;
}
#ifndef OLD
int nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *count, Process *out)
{
    return processes(device, count, out, (unsigned) knob("pid", 4000), (unsigned) knob("computing", 2));
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(Device *device, unsigned *count, Process *out)
{
    return processes(device, count, out, (unsigned) knob("pid", 4000), (unsigned) knob("drawing", 1));
}
#endif
int nvmlDeviceGetMigMode(Device *device, unsigned *current, unsigned *pending)
{
    *current = *pending = knob("mig", 0) > 0;
    return knob("mig", -1) < 0 ? NOT_SUPPORTED : SUCCESS;
}
int nvmlDeviceGetMaxMigDeviceCount(Device *device, unsigned *count) { *count = 7; return SUCCESS; }
int nvmlDeviceGetMigDeviceHandleByIndex(Device *device, unsigned index, Device **instance)
{
    if (index >= knob("mig", 0)) return NOT_FOUND;
    instances[device->card][index].card = device->card;
    instances[device->card][index].slot = (int) index;
    *instance = &instances[device->card][index];
    return SUCCESS;
}
