"""Which of a host's devices count, written beside each with the reason, so that lists need not work it out."""

from __future__ import annotations

from gpus_app.core.gpu_set import GpuSet, exclusion, fold
from gpus_app.models import Device, Host
from gpus_app.selectors import device_policy, idle_devices, readings


def refresh_eligibility(host: Host) -> GpuSet:
    """Judge the devices anew under the settings in force; gives the eligible ones."""
    policy, kept = device_policy(host), idle_devices(host)
    members = {device.index for device in kept.devices}
    folded = {reading.index: fold(reading, policy) for reading in readings(host)}
    changed = []
    for device in host.devices.all():
        reason = "" if device.index in members else exclusion(folded[device.index], policy, kept)[:300]
        if (device.eligible, device.eligible_reason) != (not reason, reason):
            device.eligible, device.eligible_reason = not reason, reason
            changed.append(device)
    Device.objects.bulk_update(changed, ["eligible", "eligible_reason"])
    return kept
