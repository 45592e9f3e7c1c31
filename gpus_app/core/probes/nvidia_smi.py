"""The text of `nvidia-smi`, one pass or looped (sizing.md 17)."""

from __future__ import annotations

from collections.abc import Iterable

from gpus_app.core.readings import DeviceReading, ProcessReading
from gpus_app.core.units import MIB

QUERY = "index,name,uuid,temperature.gpu,utilization.gpu,memory.used,memory.total,fan.speed,power.draw"
PROCESS_QUERY = "pid,used_memory,process_name"
DEVICE_AND_PROCESS_QUERY = f"gpu_uuid,{PROCESS_QUERY}"
_FIELDS = 9

Row = tuple[str, ...]


def snapshots(lines: Iterable[str]) -> list[list[Row]]:
    """The rows of each pass. A pass ends where the index does not rise above that of its first row."""
    passes: list[list[Row]] = []
    batch: list[Row] = []
    for line in lines:
        row = tuple(field.strip() for field in line.split(","))
        if len(row) < _FIELDS or not row[0].isdigit():
            continue
        if batch and int(row[0]) <= int(batch[0][0]):
            passes.append(batch)
            batch = []
        batch.append(row)
    return [*passes, batch] if batch else passes


def reading_of_row(row: Row) -> DeviceReading:
    """One row of the device query. A figure of `[N/A]` reads as not reported."""
    return DeviceReading(
        index=int(row[0]),
        name=row[1],
        total_bytes=_mib(row[6]),
        used_bytes=_mib(row[5]),
        vendor="nvidia",
        uuid=row[2],
        temperature_celsius=_number(row[3]),
        utilisation_percent=_number(row[4]),
        power_watts=_number(row[8]),
    )


def processes(lines: Iterable[str]) -> list[ProcessReading]:
    """Rows of the process query; a name may hold commas, a row without a memory figure is left out."""
    found = []
    for line in lines:
        fields = [field.strip() for field in line.split(",", 2)]
        if len(fields) == 3 and fields[0].isdigit() and fields[1].isdigit():
            found.append(ProcessReading(int(fields[0]), int(fields[1]) * MIB, fields[2]))
    return found


def processes_by_device(lines: Iterable[str]) -> dict[str, tuple[ProcessReading, ...] | None]:
    """Unique id of a device -> its processes; None where one of them does not say what it holds."""
    rows: dict[str, list[str]] = {}
    for line in lines:
        uuid, _, rest = line.partition(",")
        if rest:
            rows.setdefault(uuid.strip(), []).append(rest)
    found = {uuid: processes(texts) for uuid, texts in rows.items()}
    return {uuid: tuple(found[uuid]) if len(found[uuid]) == len(texts) else None for uuid, texts in rows.items()}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _mib(text: str) -> int:
    return int((_number(text) or 0.0) * MIB)
