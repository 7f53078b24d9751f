"""What a service counts, in the OpenMetrics format; counters of all workers lie in files that each of them maps.

A worker writes its own file and reads all of them, so that it does not matter which one is asked for `/metrics`.
What was served in the last hour is kept by minute and band of κ: items of the head, all items, and for each item the
minute in which it was last served, which all workers write to one file.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUTES = ("recommend", "recommend_many", "similar", "items", "users", "search", "audit", "page", "reload", "other")
STATUSES = ("2xx", "4xx", "503", "5xx")
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
BANDS = ((-1e9, -1.0), (-1.0, -0.25), (-0.25, 0.0), (0.0, 0.0), (0.0, 0.25), (0.25, 1.0), (1.0, 1e9))
NAMES = ("below -1", "-1 to -0.25", "-0.25 to 0", "0", "0 to 0.25", "0.25 to 1", "above 1")
HOUR = 60

_REQUESTS = len(ROUTES) * len(STATUSES)
_LATENCY = len(ROUTES) * (len(SECONDS) + 2)
_BATCHES = len(SIZES) + 2
_SERVED = HOUR * len(BANDS) * 3
LENGTH = _REQUESTS + _LATENCY + _BATCHES + _SERVED + 2


def band_of(kappa: float) -> int:
    """Where κ lies."""
    if kappa == 0:
        return 3
    return next(
        place for place, (low, high) in enumerate(BANDS) if low <= kappa < high or (kappa > 0 and kappa <= high)
    )


class Metrics:
    """The counters of one worker."""

    def __init__(self, folder: Path, slot: int) -> None:
        self._folder = folder
        file = folder / f"metrics-{slot}.bin"
        new = not file.exists()
        self._cells = np.memmap(file, np.float64, "w+" if new else "r+", shape=(LENGTH,))
        self._last: tuple[str, NDArray[Any]] | None = None

    def _parts(self, cells: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        ends = np.cumsum([_REQUESTS, _LATENCY, _BATCHES, _SERVED])
        requests, latency, batches, served, rest = np.split(cells, ends)
        return (
            requests.reshape(len(ROUTES), len(STATUSES)),
            latency.reshape(len(ROUTES), -1),
            batches,
            served.reshape(HOUR, len(BANDS), 3),
            rest,
        )

    def request(self, route: str, status: int, seconds: float) -> None:
        """One request was answered."""
        place = ROUTES.index(route)
        kind = 2 if status == 503 else 0 if status < 400 else 1 if status < 500 else 3
        self._cells[place * len(STATUSES) + kind] += 1
        width = len(SECONDS) + 2
        first = _REQUESTS + place * width
        self._cells[first + int(np.searchsorted(SECONDS, seconds))] += 1
        self._cells[first + width - 1] += seconds

    def batch(self, size: int) -> None:
        """One batch was computed."""
        first = _REQUESTS + _LATENCY
        self._cells[first + int(np.searchsorted(SIZES, size))] += 1
        self._cells[first + _BATCHES - 1] += size

    def waiting(self, number: int) -> None:
        """So many wait in this worker."""
        self._cells[LENGTH - 2] = number

    def reloaded(self) -> None:
        """Another snapshot is served."""
        self._cells[LENGTH - 1] += 1

    def served(self, snapshot: str, head: NDArray[np.bool_], kappa: float, items: NDArray[Any]) -> None:
        """A list went out."""
        minute, band = int(time.time() // 60), band_of(kappa)
        first = _REQUESTS + _LATENCY + _BATCHES + ((minute % HOUR) * len(BANDS) + band) * 3
        if self._cells[first] != minute:
            self._cells[first : first + 3] = minute, 0, 0
        self._cells[first + 1] += len(items)
        self._cells[first + 2] += np.count_nonzero(head[items])
        self._when(snapshot, len(head))[band, items] = minute

    def _when(self, snapshot: str, n_items: int) -> NDArray[Any]:
        """The minute in which each item was last served, by band of κ; shared by all workers."""
        if self._last is None or self._last[0] != snapshot:
            file, shape = self._folder / f"served-{snapshot}.bin", (len(BANDS), n_items)
            if not file.exists():
                with file.open("ab") as made:  # two workers may: both make it as long
                    made.truncate(4 * len(BANDS) * n_items)
            self._last = snapshot, np.memmap(file, np.int32, "r+", shape=shape)
        return self._last[1]

    def text(self, snapshot: str, n_items: int) -> str:
        """All workers' counters as an exposition."""
        files = sorted(self._folder.glob("metrics-*.bin"))
        each = [self._parts(np.memmap(file, np.float64, "r", shape=(LENGTH,))) for file in files]
        requests, latency, batches = (np.sum([parts[place] for parts in each], axis=0) for place in range(3))
        now = int(time.time() // 60)
        fresh = [np.where(parts[3][:, :, :1] > now - HOUR, parts[3], 0).sum(axis=0) for parts in each]
        served: Any = sum(fresh)
        when = self._when(snapshot, n_items)
        lines = ["# TYPE dpaa_requests counter", "# HELP dpaa_requests Requests answered."]
        for place, route in enumerate(ROUTES):
            for kind, status in enumerate(STATUSES):
                lines.append(f'dpaa_requests_total{{route="{route}",status="{status}"}} {requests[place, kind]:.0f}')
        lines += ["# TYPE dpaa_request_seconds histogram", "# UNIT dpaa_request_seconds seconds"]
        for place, route in enumerate(ROUTES):
            lines += _histogram("dpaa_request_seconds", f'route="{route}",', SECONDS, latency[place])
        lines += ["# TYPE dpaa_batch_size histogram", *_histogram("dpaa_batch_size", "", SIZES, batches)]
        lines += ["# TYPE dpaa_queue gauge", f"dpaa_queue {sum(parts[4][0] for parts in each):.0f}"]
        lines += ["# TYPE dpaa_reloads counter", f"dpaa_reloads_total {sum(parts[4][1] for parts in each):.0f}"]
        lines += ["# TYPE dpaa_served_items gauge", "# HELP dpaa_served_items Items listed in the last hour."]
        lines += [f'dpaa_served_items{{dial="{name}"}} {served[band, 1]:.0f}' for band, name in enumerate(NAMES)]
        lines += [
            "# TYPE dpaa_served_head_share gauge",
            "# HELP dpaa_served_head_share Of these, the share of the head.",
        ]
        for band, name in enumerate(NAMES):
            if served[band, 1]:
                lines.append(f'dpaa_served_head_share{{dial="{name}"}} {served[band, 2] / served[band, 1]:.6g}')
        lines += ["# TYPE dpaa_served_coverage gauge", "# HELP dpaa_served_coverage Share of all items, last hour."]
        for band, name in enumerate(NAMES):
            share = np.count_nonzero(when[band] > now - HOUR) / n_items
            lines.append(f'dpaa_served_coverage{{dial="{name}"}} {share:.6g}')
        return "\n".join([*lines, "# EOF", ""])


def _histogram(name: str, label: str, edges: tuple[float, ...], cells: NDArray[Any]) -> list[str]:
    upto = np.cumsum(cells[:-1])
    total = f"{{{label[:-1]}}}" if label else ""
    lines = [f'{name}_bucket{{{label}le="{edge:g}"}} {upto[place]:.0f}' for place, edge in enumerate(edges)]
    lines.append(f'{name}_bucket{{{label}le="+Inf"}} {upto[-1]:.0f}')
    return [*lines, f"{name}_count{total} {upto[-1]:.0f}", f"{name}_sum{total} {cells[-1]:.9g}"]
