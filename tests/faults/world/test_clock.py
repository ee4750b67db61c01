"""The clock jumps an hour back in the middle of a run: no figure, no duration and no deadline notices."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.faults.world.conftest import World

HOUR_S = 3600
# Every way to ask for the time of day, an hour behind from the moment on in which a certain file is there.
SHIM = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t jump(void) {
    const char *sign = getenv("CLOCK_JUMPS_WITH");
    return sign && access(sign, F_OK) == 0 ? 3600 : 0;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int code = syscall(SYS_clock_gettime, clock, now);
    if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec -= jump();
    return code;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}
"""


@pytest.fixture
def jumping_clock(tmp_path: Path) -> dict[str, str]:
    """The environment of a process whose clock jumps when the file `jump` is made."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("a clock that jumps is made with a C compiler, and preloaded as Linux does it")
    source, library = tmp_path / "clock.c", tmp_path / "clock.so"
    source.write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source)], check=True)
    return {"LD_PRELOAD": str(library), "CLOCK_JUMPS_WITH": str(tmp_path / "jump")}


@pytest.mark.parametrize("crash_mode", ["raise", "sigkill"])
def test_a_clock_that_jumps_back_an_hour_changes_nothing(
    crash_mode: str,
    jumping_clock: dict[str, str],
    world_in: Callable[..., World],
    held: Callable[..., None],
    came_to_its_figures: Callable[..., None],
) -> None:
    world, sign = world_in(crash_mode=crash_mode), Path(jumping_clock["CLOCK_JUMPS_WITH"])
    before = time.monotonic()
    world.begin(environment=jumping_clock)
    held(world, sign.touch)
    done = world.end()
    came_to_its_figures(world, done)
    (replication,) = json.loads(done.stdout)["designs"][0]["replications"]
    assert 0 < replication["elapsed_s"] <= time.monotonic() - before
    assert 0 < replication["checkpoint_write_us"]["max"] < HOUR_S * 1e6
    tell = [sys.executable, "-c", "import time; print(time.time())"]
    told = subprocess.run(tell, env={**os.environ, **jumping_clock}, capture_output=True, text=True, check=True)
    assert time.time() - float(told.stdout) > HOUR_S - 60, "the shim shifts nothing, so nothing was shown"
