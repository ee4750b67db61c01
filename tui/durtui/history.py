"""History: what each lane had wasted when it had made so many calls, in as many points as a screen can show."""

from __future__ import annotations

from collections.abc import Sequence

from durtui.plot import Curve
from durtui.view import LaneView

POINTS = 400  # more than a screen has columns of dots


class History:
    """The wasted cost of each lane against its calls, from the first look on; every other point goes when full."""

    def __init__(self) -> None:
        self._points: dict[str, list[tuple[float, float]]] = {}

    def clear(self) -> None:
        """Begin anew: another run."""
        self._points.clear()

    def add(self, views: Sequence[LaneView]) -> None:
        """Take one look at every lane."""
        for view in views:
            points = self._points.setdefault(view.design.name, [(0.0, 0.0)])
            calls = view.figures.model_calls
            if calls > points[-1][0]:
                points.append((calls, view.figures.wasted_cost_usd))
            if len(points) > POINTS:
                del points[1:-1:2]

    def curves(self) -> list[Curve]:
        """A curve a lane, in the order of the first look; each ends where its lane is."""
        curves = []
        for points in self._points.values():
            xs, costs = zip(*points, strict=True)
            curves.append(Curve(xs, costs, (0.0,) * len(xs)))
        return curves
