"""Closed forms of write amplification under uniform random writes (reference.md, section 1).

U logical pages, T physical pages, a = T / U the spare factor, rho = 1 / a, b pages per block,
A = programs per host write. Sources: Desnoyers (SYSTOR 2012), Xiang and Kurkoski (2012), Bux
and Iliadis (2010), Van Houdt (SIGMETRICS 2013).
"""

from __future__ import annotations

import math
from collections.abc import Callable


def harmonic(n: int) -> float:
    """Returns H_n = 1 + 1/2 + ... + 1/n."""
    return sum(1 / i for i in range(1, n + 1))


def bisect(function: Callable[[float], float], low: float, high: float) -> float:
    """Returns a root of a function with f(low) < 0 < f(high) or the other way round."""
    rising = function(low) < 0
    for _ in range(64):
        middle = (low + high) / 2
        if (function(middle) < 0) == rising:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def lambert_w0(x: float) -> float:
    """Returns the principal branch of w e^w = x for -1/e <= x <= 0: the w in [-1, 0]."""
    assert -1 / math.e <= x <= 0
    return bisect(lambda w: w * math.exp(w) - x, -1.0, 0.0)


def fifo(a: float) -> float:
    """Returns A of FIFO (and LRU) cleaning, for many blocks: a / (a + W0(-a e^-a))."""
    return a / (a + lambert_w0(-a * math.exp(-a)))


def greedy(a: float, b: int) -> float:
    """Returns A of greedy cleaning with b pages per block, for many blocks.

    The victim has m valid pages, never m + 1: m is the integer for which 0 <= mu <= A rho / m, mu the
    fraction of blocks with m valid pages.
    """
    rho = 1 / a
    for m in range(b):
        tail = harmonic(b) - harmonic(m)
        below = b - m - m * tail
        if below <= 0:
            continue
        a_rho = (b * rho - m) / below
        mu = 1 - a_rho * tail
        if a_rho > 0 and mu >= -1e-12 and (m == 0 or mu <= a_rho / m + 1e-12):
            return a_rho / rho
    raise ValueError(f"no m for a = {a}, b = {b}")


def greedy_smooth(a: float, b: int) -> float:
    """Returns Desnoyers' smooth form of greedy cleaning's A, within 0.13 % of the exact value."""
    k = 1 + 1 / (2 * b)
    x0 = 0.5 - b / a * lambert_w0(-k * a * math.exp(-k * a))
    return b / (b - x0 + 1)


def d_choices(a: float, b: int, d: int) -> float:
    """Returns A if the victim is the emptiest of d blocks drawn at random, for many blocks.

    1 - s_k^d = k (s_k - s_(k+1)) / (A rho) for k = b..1, s_(b+1) = 0, where s_k is the fraction
    of blocks with at least k valid pages; A is such that the sum of s_k is b rho.
    """
    rho = 1 / a

    def surplus(big_a: float) -> float:
        s = 0.0
        total = 0.0
        for k in range(b, 0, -1):
            # s_k solves 1 - s^d = k (s - s_next) / (A rho), whose left side falls with s and whose right side
            # rises.
            following = s
            slope = k / (big_a * rho)
            s = bisect(lambda x: 1 - x**d - slope * (x - following), 0.0, 1.0)  # noqa: B023
            total += s
        return total - b * rho

    return bisect(surplus, 1.0 + 1e-9, 1000.0)


def windowed_greedy(a: float, b: int, share: float) -> float:
    """Returns A of greedy cleaning among the oldest ``share`` of the blocks, for many blocks.

    Outside the window blocks age as under FIFO: a page is still valid when its block enters the window with
    the probability p = exp(-(1 - share) a / A), so the probability q_i of i valid pages is binomial; Q_i is
    its tail. Within the window greedy leaves no block with fewer than m valid pages; for each i above m, a
    share of A Q_i / (a i) of all blocks has i valid pages. The other blocks of the window have m, which gives
    the flow x of blocks that fall from m to m - 1 and are then collected. From x follows the mean number of
    valid pages of a victim, and so A. A share of 1 is greedy, one of 0 FIFO.
    """

    def victim(big_a: float) -> float:
        p = math.exp(-(1 - share) * a / big_a)
        q = [math.comb(b, i) * p**i * (1 - p) ** (b - i) for i in range(b + 1)]
        left, m = share, b
        tail = q[b]
        while m > 0 and big_a * tail / (a * m) <= left:
            left -= big_a * tail / (a * m)
            m -= 1
            tail += q[m]
        return sum(i * q[i] for i in range(m)) + m * tail - left * a * m / big_a

    return bisect(lambda big_a: b / (b - victim(big_a)) - big_a, 1.0 + 1e-9, 1000.0)


def effective_spare(blocks: int, b: int, logical_pages: float, reserve: int, frontiers: int) -> float:
    """Returns the spare factor a of a device that keeps ``reserve`` blocks erased and ``frontiers`` blocks
    open.
    """
    return (blocks - reserve - frontiers / 2) * b / logical_pages


def greedy_device(blocks: int, b: int, logical_pages: float, reserve: int, frontiers: int) -> float:
    """Returns A of greedy cleaning on a device, accounting for reserve and open blocks."""
    return greedy(effective_spare(blocks, b, logical_pages, reserve, frontiers), b)


TABLE = [  # b, a, greedy, FIFO, d = 2, d = 5, d = 10
    (64, 1.07, 7.0099, 7.8172, 10.2772, 7.8746, 7.3230),
    (64, 1.15, 3.8005, 4.0160, 5.3123, 4.1846, 3.9304),
    (64, 1.28, 2.4028, 2.4814, 3.2453, 2.6122, 2.4711),
    (256, 1.07, 7.5969, 7.8172, 10.5835, 8.3272, 7.8280),
    (256, 1.15, 3.9596, 4.0160, 5.3938, 4.3048, 4.0659),
    (256, 1.28, 2.4610, 2.4814, 3.2742, 2.6552, 2.5202),
]
"""The table of the reference, to four decimal places."""


def row(b: int, a: float) -> tuple[float, ...]:
    """Returns one computed line of the table."""
    return (b, a, greedy(a, b), fifo(a), d_choices(a, b, 2), d_choices(a, b, 5), d_choices(a, b, 10))


def main() -> None:
    print("   b     a   greedy     FIFO      d=2      d=5     d=10")
    for b, a, *_ in TABLE:
        print(f"{b:4d} {a:5.2f}", *(f"{value:8.4f}" for value in row(b, a)[2:]))


if __name__ == "__main__":
    main()
