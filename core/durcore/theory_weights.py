"""What a chain carries along its paths: probability, with the moments or the small law of something counted.

Every weight knows two operations. `a + b`: one thing or the other happens. `a * b`: both happen, independently, one
after the other, and what they count adds up. Plain floats (probabilities alone) and complex numbers (a generating
function at one point) are weights too, so one chain serves them all. Nothing in here knows about jobs.
"""

from __future__ import annotations

from typing import NamedTuple


class Moments(NamedTuple):
    """The probability of an event, and mean and central moments of a count given that event.

    Kept about the mean and merged pairwise (Chan, Golub and LeVeque 1983; Pébay 2008, for the orders above two), so
    nothing is lost to cancellation: raw second moments would lose a deviation of 0.001 beside a mean of 100,000. A
    count that is certain keeps a variance of exactly 0, because equal means differ by exactly 0.
    """

    mass: float
    mean: float = 0.0
    variance: float = 0.0
    third: float = 0.0
    fourth: float = 0.0

    def __add__(self, other: Moments) -> Moments:  # type: ignore[override]  # a weight, not a tuple to be joined
        """Either event: the law of total variance, and its like for the third and fourth moments."""
        # The likelier event is the base: a small mean is then never the difference of two large ones.
        a, b = (self, other) if self[0] >= other[0] else (other, self)
        if b[0] == 0.0:
            return a
        mass_a, mean_a, var_a, third_a, fourth_a = a
        mass_b, mean_b, var_b, third_b, fourth_b = b
        mass = mass_a + mass_b
        u = mass_a / mass
        w = mass_b / mass
        gap = mean_b - mean_a
        if gap == 0.0 and var_a == 0.0 == var_b:
            return Moments(mass, mean_a)
        spread = u * w * gap
        return Moments(
            mass,
            mean_a + w * gap,
            u * var_a + w * var_b + spread * gap,
            u * third_a + w * third_b + spread * (3 * (var_b - var_a) + gap * gap * (u - w)),
            u * fourth_a
            + w * fourth_b
            + spread * (4 * (third_b - third_a) + 6 * gap * (u * var_b + w * var_a) + gap**3 * (u * u - u * w + w * w)),
        )

    def __mul__(self, other: Moments) -> Moments:  # type: ignore[override]  # a weight, not a tuple to be repeated
        """Both events: means, variances and third moments of independent counts add up."""
        mass_a, mean_a, var_a, third_a, fourth_a = self
        mass_b, mean_b, var_b, third_b, fourth_b = other
        mass = mass_a * mass_b
        if mass == 0.0:
            return IMPOSSIBLE
        return Moments(
            mass,
            mean_a + mean_b,
            var_a + var_b,
            third_a + third_b,
            fourth_a + fourth_b + 6 * var_a * var_b,
        )


IMPOSSIBLE = Moments(0.0)


class Several(NamedTuple):
    """The probabilities of an event with a count of none, of one, and of two or more.

    What duplicates need: "two or more" is added up by itself, for one less the rest would lose it where it is rare.
    """

    none: float
    one: float
    more: float

    def __add__(self, other: Several) -> Several:  # type: ignore[override]  # a weight, not a tuple to be joined
        """Either event."""
        return Several(self.none + other.none, self.one + other.one, self.more + other.more)

    def __mul__(self, other: Several) -> Several:  # type: ignore[override]  # a weight, not a tuple to be repeated
        """Both events: the counts add up, and stay at two or more once they are there."""
        any_other = other.none + other.one + other.more
        return Several(
            self.none * other.none,
            self.none * other.one + self.one * other.none,
            self.none * other.more + self.one * (other.one + other.more) + self.more * any_other,
        )


class First(NamedTuple):
    """The probabilities of an event in which neither of two things happened, or one or the other of them came first.

    What a key needs: whoever commits it first decides for good whether its email was sent.
    """

    neither: float
    one: float
    other: float

    def __add__(self, other: First) -> First:  # type: ignore[override]  # a weight, not a tuple to be joined
        """Either event."""
        return First(self.neither + other.neither, self.one + other.one, self.other + other.other)

    def __mul__(self, other: First) -> First:  # type: ignore[override]  # a weight, not a tuple to be repeated
        """Both events, `self` earlier: what it decided stays decided."""
        any_other = other.neither + other.one + other.other
        return First(
            self.neither * other.neither,
            self.neither * other.one + self.one * any_other,
            self.neither * other.other + self.other * any_other,
        )


def moments(probability: float, count: int) -> Moments:
    """An event of this probability that counts `count` for certain."""
    return Moments(probability, float(count)) if probability > 0.0 else IMPOSSIBLE


def several(probability: float, count: int) -> Several:
    """An event of this probability that counts `count` for certain."""
    if count == 0:
        return Several(probability, 0.0, 0.0)
    return Several(0.0, probability, 0.0) if count == 1 else Several(0.0, 0.0, probability)


def first(probability: float, which: int) -> First:
    """An event of this probability in which neither thing happened (0), or the one (1), or the other (2)."""
    if which == 0:
        return First(probability, 0.0, 0.0)
    return First(0.0, probability, 0.0) if which == 1 else First(0.0, 0.0, probability)
