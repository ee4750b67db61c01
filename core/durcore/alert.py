"""The resume alert: whether the deliveries of late have failed more often than theory allows for.

An operator's alarm over two streamed counts, attempts and redeliveries. It judges no result, and says nothing of a run
in which nothing is redelivered any more, such as whole-job retry in its last deliveries.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Self

from durcore.designs import Policy
from durcore.scenario import Scenario

WINDOW = 1000  # attempts that the alert looks back on
GRID = 50  # every window lies in one that ends on this grid and is so much longer: only those count as looks
FALSE_ALARMS = 0.005  # at the most, of a run


def redelivery_rate(scenario: Scenario, policy: Policy) -> float:
    """Redeliveries expected for each attempt, while deliveries are left.

    An attempt crashes with c. A step that is tried up to m times takes (1 - t^m) / (1 - t) attempts on the average but
    for crashes, which cut both alike, and is given up with t^m: the elementary renewal theorem divides the two.
    """
    t, c, m = scenario.transient_rate, scenario.crash_rate, policy.tries
    return min(c + t**m / sum(t**i for i in range(m)), 1.0)


def most_calls(scenario: Scenario, policy: Policy) -> float:
    """A bound on the attempts expected of a lane, near enough for a logarithm and cheaper than theory."""
    survives = 1 - scenario.transient_rate - scenario.crash_rate
    a_step: float = policy.deliveries * policy.tries
    if policy.checkpoints and survives * a_step > 1:  # a step is tried until it is done
        a_step = 1 / survives
    return scenario.jobs * scenario.steps * a_step


class ResumeAlert:
    """Watches one lane of which at most about `calls` attempts are expected, `rate` of them to end in a redelivery.

    With fewer redeliveries than a binomial law gives, which is so as each needs an attempt of its own, Chernoff's bound
    on that law holds the false alarms of a run below FALSE_ALARMS.
    """

    def __init__(self, rate: float, calls: float) -> None:
        self._rate = rate
        self._needed = math.log(max(calls, GRID) / GRID / FALSE_ALARMS)
        self._looks: deque[tuple[int, int]] = deque()
        self.struck_at: int | None = None  # how many attempts there were when it last struck

    @classmethod
    def of(cls, scenario: Scenario, policy: Policy) -> Self:
        """The alert of a lane."""
        return cls(redelivery_rate(scenario, policy), most_calls(scenario, policy))

    def look(self, calls: int, redeliveries: int) -> bool:
        """Take note of a lane's counts; tell whether the attempts of late strike the alert.

        They are the last WINDOW, or as many as there were between two looks that are further apart.
        """
        looks = self._looks
        if looks and calls < looks[-1][0]:  # a recovery took an attempt back
            looks.clear()
        if not looks or calls > looks[-1][0]:
            looks.append((calls, redeliveries))
        while len(looks) > 1 and looks[1][0] <= calls - WINDOW:
            looks.popleft()
        before, had = looks[0]
        if not self._strikes(calls - before, redeliveries - had):
            return False
        self.struck_at = calls
        return True

    def _strikes(self, attempts: int, redeliveries: int) -> bool:
        if attempts <= 0:
            return False
        attempts += GRID
        share, rate = min(redeliveries / attempts, 1.0), self._rate
        if share <= rate or rate >= 1:
            return False
        if rate == 0:
            return True
        rest = (1 - share) * math.log((1 - share) / (1 - rate)) if share < 1 else 0.0
        return attempts * (share * math.log(share / rate) + rest) > self._needed
