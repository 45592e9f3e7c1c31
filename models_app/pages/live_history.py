"""The past hour of a host: data for drawings, and the same figures as tables for those who see no drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from gpus_app.models import TelemetryPoint
from gpus_app.telemetry import memory_of
from gpus_app.telemetry_rows import SLOT_SECONDS
from quartermaster_site.figures import UNKNOWN, gib

RAM = "ram"
GAP_SECONDS = 3 * SLOT_SECONDS
"""Between two points so far apart nothing is known: the line breaks."""
ROW_SECONDS = 300
Series = list[float | None]


@dataclass(frozen=True, slots=True)
class TableRow:
    """Five minutes in words."""

    time: str
    memory: str
    busy: str
    temperature: str


@dataclass(frozen=True, slots=True)
class Plot:
    """One drawing. `key` finds its series in the data."""

    key: str
    name: str
    has_busy: bool
    rows: tuple[TableRow, ...]


def plots_of(sample: Mapping[str, Any], points: Sequence[TelemetryPoint]) -> list[Plot]:
    """A drawing for each device of the last sample, and one for RAM."""
    devices = [
        Plot(
            f"gpu-{device['index']}", f"GPU {device['index']} · {device['name']}", True, _rows(points, device["index"])
        )
        for device in sample.get("devices", ())
    ]
    return [*devices, Plot(RAM, "RAM", False, _rows(points, None))] if sample.get(RAM) else devices


def history_of(plots: Sequence[Plot], points: Sequence[TelemetryPoint]) -> dict[str, Any]:
    """{"gap": seconds, "t": [Unix seconds], "plots": {key: [memory in %, busy in %]}}; null where nothing is known."""
    times: list[float] = []
    series: dict[str, list[Series]] = {plot.key: [[], []] if plot.has_busy else [[]] for plot in plots}
    for point in points:
        at = round(point.at.timestamp(), 1)
        if times and at - times[-1] > GAP_SECONDS:
            times.append(times[-1] + SLOT_SECONDS)
            _append(series, {})
        times.append(at)
        _append(series, _percentages(point.values))
    return {"gap": GAP_SECONDS, "t": times, "plots": series}


def values_of(sample: Mapping[str, Any]) -> dict[str, Series]:
    """The newest value of each series, from a sample."""
    ram = sample.get("ram")
    return _percentages(
        {
            "devices": {
                str(each["index"]): [*memory_of(each), each["utilisation_percent"], None]
                for each in sample.get("devices", ())
            },
            "ram": [ram["total_bytes"] - ram["available_bytes"], ram["total_bytes"]] if ram else None,
        }
    )


def _percentages(values: Mapping[str, Any]) -> dict[str, Series]:
    found: dict[str, Series] = {
        f"gpu-{index}": [_share(used, total), busy] for index, (used, total, busy, _) in values["devices"].items()
    }
    if values["ram"]:
        found[RAM] = [_share(*values["ram"])]
    return found


def _share(used: int, total: int) -> float | None:
    return round(100 * min(used, total) / total, 1) if total > 0 else None


def _append(series: Mapping[str, list[Series]], values: Mapping[str, Series]) -> None:
    for key, lines in series.items():
        for position, line in enumerate(lines):
            line.append(values[key][position] if key in values else None)


def _rows(points: Sequence[TelemetryPoint], index: int | None) -> tuple[TableRow, ...]:
    """Of a device, or of RAM for None: what was highest in five minutes, and how busy it was on average."""
    rows = []
    for _, group in groupby(points, key=lambda point: int(point.at.timestamp() // ROW_SECONDS)):
        found = list(group)
        if values := [value for point in found if (value := _value(point, index))]:
            rows.append(_row(f"{found[0].at:%H:%M}", values))
    return tuple(reversed(rows))


def _value(point: TelemetryPoint, index: int | None) -> list[Any] | None:
    value: list[Any] | None = point.values["ram"] if index is None else point.values["devices"].get(str(index))
    return value


def _row(time: str, values: Sequence[list[Any]]) -> TableRow:
    busy = [value[2] for value in values if len(value) > 2 and value[2] is not None]
    temperature = [value[3] for value in values if len(value) > 3 and value[3] is not None]
    return TableRow(
        time=time,
        memory=gib(max(value[0] for value in values)),
        busy=f"{sum(busy) / len(busy):.0f} %" if busy else UNKNOWN,
        temperature=f"{max(temperature):.0f} °C" if temperature else UNKNOWN,
    )
