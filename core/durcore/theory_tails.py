"""How rare an observed figure is: exact tails of a binomial count, and of a sum over jobs by its generating function.

Two-sided here means twice the smaller of P(figure <= observed) and P(figure >= observed), at most 1. No normal
approximation is made, and nothing in here knows what a figure means.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable
from math import cos, exp, expm1, inf, isfinite, isnan, lgamma, log, log1p, nan, pi, sin, sqrt

Generating = Callable[[complex], complex]  # z -> E[z**figure of one job]

POINTS_MIN = 64
AGREEMENT = 1e-8
ROUNDING = 2**-52
SEARCH_STEPS = 36
GOLDEN = (sqrt(5) - 1) / 2


def binomial_tail(observed: int, jobs: int, happens: float, does_not: float) -> float:
    """The two-sided tail of Binomial(jobs, happens) at `observed`, to about 1e-12 relative.

    Both probabilities are asked for, since one less a tiny one is one. The terms are added up outward from the observed
    count on its side of the mean, where they fall: at most some ten deviations of them, 15 ms for ten million jobs.
    """
    if not 0 <= observed <= jobs:
        return 0.0
    if observed < jobs * happens:  # count what does not happen instead, and the tail is the upper one
        observed, happens, does_not = jobs - observed, does_not, happens
    at = _binomial_probability(observed, jobs, happens, does_not)
    tail = term = at
    odds = happens / does_not if does_not > 0 else inf
    for k in range(observed, jobs):
        term *= (jobs - k) / (k + 1) * odds
        tail += term
        if term <= tail * 1e-17:
            break
    return two_sided(tail, at)


def two_sided(tail: float, at: float) -> float:
    """Twice the smaller tail, at most 1, from one tail and the probability of the observed value, which is in both."""
    return max(0.0, min(1.0, 2 * min(tail, 1 - tail + at)))


def _binomial_probability(k: int, n: int, p: float, q: float) -> float:
    """P(exactly k of n), by Loader's saddle-point form (2000): differences of log-gammas would lose eight digits.

    n! is Stirling's formula times exp(error); what is left of the powers is two deviances, each computed without
    cancellation.
    """
    if p == 0.0 or q == 0.0:
        return 1.0 if k == (0 if p == 0.0 else n) else 0.0
    if k == 0:
        return exp(n * (log1p(-p) if p < 0.5 else log(q)))
    if k == n:
        return exp(n * (log1p(-q) if q < 0.5 else log(p)))
    exponent = _stirling_error(n) - _stirling_error(k) - _stirling_error(n - k)
    exponent -= _deviance(k, n * p) + _deviance(n - k, n * q)
    return exp(exponent) * sqrt(n / (2 * pi * k * (n - k)))


def _stirling_error(n: int) -> float:
    """log n! - log(sqrt(2 pi n) (n / e)^n)."""
    if n < 16:
        return lgamma(n + 1) - (n + 0.5) * log(n) + n - log(2 * pi) / 2
    square = 1.0 / (n * n)
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - square / 1188) * square) * square) * square) / n


def _deviance(x: float, mean: float) -> float:
    """x log(x / mean) + mean - x: by its series where x is near the mean and the terms would cancel."""
    if abs(x - mean) >= 0.1 * (x + mean):
        return x * log(x / mean) + mean - x
    v = (x - mean) / (x + mean)
    term, result, j = 2 * x * v, (x - mean) * v, 1
    while True:
        term *= v * v
        j += 2
        more = result + term / j
        if more == result:
            return more
        result = more


def sum_tail(generating: Generating, jobs: int, observed: int, mean: float, points_max: int) -> float:
    """The two-sided tail of a sum over `jobs` independent jobs of a whole number that is at least 0.

    With G the generating function of one job, Cauchy's integral on a circle of radius r > 1 is
    P(sum >= y) = 1/2pi ∫ G(z)^jobs z^-y / (1 - 1/z) dθ, and on one of r < 1 P(sum <= y) = 1/2pi ∫ G(z)^jobs z^-y /
    (1 - z) dθ. At the radius where the integrand is smallest on the real axis (the saddle point) little cancels, so a
    tail of 1e-30 is as good as one of 0.1: seven digits or more. Equally spaced points converge geometrically on a
    circle, and are doubled until two results agree. A lumpy law (jobs that add 33 or nothing, observed at 34) does
    cancel, and a tail below the rounding is answered by the rounding. Where `points_max` points do not do, the answer
    is Chernoff's bound, G(r)^jobs r^-y, in place of the integral. Both stand above the truth: nobody is accused
    wrongly.
    """
    if observed < 0:
        return 0.0
    side = 1 if observed >= mean else -1  # the tail on the observed value's side of the mean: upper, lower
    whole = generating(1.0).real

    def log_bound(s: float) -> float:
        return jobs * log(_real(generating, exp(s)) / whole) - observed * s

    def height(s: float) -> float:
        value = log_bound(s) - log(-expm1(-abs(s)))
        return inf if isnan(value) else value

    s = side * _saddle(lambda size: height(side * size))
    top = height(s)
    if exp(top) == 0.0:  # it bounds the tail from above
        return 0.0
    tail, at = _circle(generating, jobs, observed, s, top, whole, points_max)
    if isnan(tail):
        return min(1.0, 2 * exp(min(0.0, log_bound(s))))
    return two_sided(tail * exp(top), at * exp(top))


def _real(generating: Generating, r: float) -> float:
    """G(r), or infinity where it is out of a float's range: no radius to look at."""
    try:
        value = generating(r).real
    except OverflowError:
        return inf
    return value if isfinite(value) and value > 0 else inf


def _saddle(height: Callable[[float], float]) -> float:
    """Where `height`, convex in |log r|, is lowest: golden section on the logarithm of |log r|."""
    low, high = log(1e-9), log(700.0)
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = height(exp(left)), height(exp(right))
    for _ in range(SEARCH_STEPS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = height(exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = height(exp(right))
    return exp(left if at_left <= at_right else right)


def _circle(
    generating: Generating, jobs: int, observed: int, s: float, top: float, whole: float, points_max: int
) -> tuple[float, float]:
    """The mean over the circle |z| = e^s of the tail's and the point probability's integrand, both over e^top.

    (nan, nan) where `points_max` points are not enough for two results to agree.
    """
    inward = -1 if s > 0 else 1  # the pole's factor is 1 - 1/z outside the unit circle, 1 - z inside

    def integrand(angle: float) -> tuple[float, float]:
        z = exp(s) * complex(cos(angle), sin(angle))
        g = generating(z) / whole
        if g == 0:
            return 0.0, 0.0
        at = cmath.exp(jobs * cmath.log(g) - observed * complex(s, angle) - top)
        return (at / (1 - z**inward)).real, at.real

    rounding = ROUNDING * max(8, jobs)  # of a mean of numbers up to 1, each a power of `jobs`
    # The integrand at the conjugate point is the conjugate: half the circle is enough, its two real points count once.
    ends = [integrand(0.0), integrand(pi)]
    tail, at = (sum(values) for values in zip(*ends, strict=True))
    points, before = 2, inf
    while points < points_max:
        for value in (integrand(pi * (2 * i + 1) / points) for i in range(points // 2)):
            tail, at = tail + 2 * value[0], at + 2 * value[1]
        points *= 2
        if points >= POINTS_MIN and abs(tail / points - before) <= AGREEMENT * abs(before) + rounding:
            return max(tail / points, rounding), max(at / points, 0.0)
        before = tail / points
    return nan, nan
