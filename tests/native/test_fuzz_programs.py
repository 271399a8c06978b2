# SPDX-License-Identifier: Apache-2.0
"""Programs of `make fuzz`: both compile, standalone and for libFuzzer, and the fuzzer of files decodes a few."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from built_objects import built_object
from idle_clock import HANG_S

from native_layers import NATIVE, list_sources

FUZZ = Path(__file__).parents[2] / "fuzz"
COMPILER = os.environ.get("CXX") or shutil.which("g++") or "c++"
OPTIONS = ["-std=c++20", "-O0", "-ffp-contract=off", f"-I{NATIVE}"]
FORMS = {"standalone": ["-DSTOKER_FUZZ_STANDALONE"], "libFuzzer": []}
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
RUN = ("audio", "container", "io", "jpeg", "raster", "video")  # whose standalone form other tests compile and run


def compiled(*arguments: str | Path) -> None:
    command = [COMPILER, *OPTIONS, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("target", "form"),
    [
        (target, form)
        for target, form in itertools.product(
            sorted(p.name.removesuffix("_fuzz.cpp") for p in FUZZ.glob("*_fuzz.cpp")), FORMS
        )
        if form != "standalone" or target not in RUN
    ],
)
def test_each_program_compiles(target: str, form: str) -> None:
    """Check syntax and types alone: linking the fuzzer of recipes would compile most of the native code once more."""
    compiled(*WARNINGS, *FORMS[form], "-fsyntax-only", FUZZ / f"{target}_fuzz.cpp")
    assert list_sources([target]), "what `fuzz/run.sh` links with it"


def linked(folder: Path, target: str) -> Path:
    """Link the sources of `fuzz/run.sh`: the objects of `make setup`, and those that it lacks."""
    built = {source: built_object(source) for source in list_sources([target])}
    own = FUZZ / f"{target}_fuzz.cpp"
    sources = [*(source for source, found in built.items() if not found), own]
    objects = [folder / f"{number}.o" for number in range(len(sources))]
    options = [[*FORMS["standalone"], *(WARNINGS if source == own else [])] for source in sources]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda s, o, more: compiled(*more, "-c", s, "-o", o), sources, objects, options))
    objects += filter(None, built.values())
    program = folder / f"{target}_fuzz"
    compiled(*objects, "-o", program)
    return program


def test_the_program_of_files_runs(tmp_path: Path, jpegs: Path) -> None:
    """In 0 seconds the program decodes each given file once."""
    program = linked(tmp_path, "jpeg")
    files = sorted(str(path) for path in jpegs.rglob("*.jpg"))[:4]
    done = subprocess.run(
        [program, "0", "1", *files], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("runs 4, headers accepted 4, entropy decoding reached 4, "), done.stderr


def test_the_program_of_audio_files_runs(tmp_path: Path) -> None:
    program = linked(tmp_path, "audio")
    done = subprocess.run(
        [program, "0", "1"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr
    runs, waves, accepted, other, damaged, frames = (int(part.split()[-1]) for part in done.stderr.split(","))
    assert runs == accepted + other + damaged == 1000 and min(accepted, other, damaged) > 50 and 50 < waves < runs
    assert frames > 50
    for name, start in (("wav", "runs 1000, parsed as WAV 1000, "), ("mp3", "runs 1000, parsed as WAV ")):
        done = subprocess.run(
            [program, "0", "1", name], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG_S
        )
        assert done.returncode == 0 and done.stderr.startswith(start), done.stderr


def test_the_program_of_files_without_loss_runs(tmp_path: Path) -> None:
    program = linked(tmp_path, "raster")
    subprocess.run([sys.executable, FUZZ / "make_raster_corpus.py", tmp_path / "corpus"], check=True, timeout=HANG_S)
    files = sorted(str(path) for path in (tmp_path / "corpus").iterdir())
    done = subprocess.run(
        [program, "0", "1", *files], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr
    counted = [int(part.split()[-1]) for part in done.stderr.split(",")]
    assert counted[:4] == [len(files), len(files), 0, 0] and counted[4] > len(files) // 2, done.stderr


def test_the_program_of_videos_runs(tmp_path: Path) -> None:
    program = linked(tmp_path, "video")
    done = subprocess.run(
        [program, "0", "1"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr
    counted = [int(part.split()[-1]) for part in done.stderr.split(",")]
    runs, conversions, large, resampled, whole, refused = counted
    assert runs == whole + refused == 200 <= min(conversions, resampled) and min(large, whole, refused) > 0


def test_the_program_of_manifests_and_cached_blocks_runs(tmp_path: Path) -> None:
    program = linked(tmp_path, "io")
    done = subprocess.run(
        [program, "0", "1"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr
    runs, kept, missing, tables, refused, records, faults = (int(p.split()[-1]) for p in done.stderr.split(","))
    assert runs == 1000 and min(kept, missing, tables, refused, records, faults) > 20, done.stderr


def in_parallel(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, FUZZ / "parallel.py", "3", "7", folder, sys.executable, "-c", code, "{seed}"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)


def test_counts_of_several_processes_are_added_up(tmp_path: Path) -> None:
    done = in_parallel(tmp_path, "import sys; print('runs', sys.argv[1] + ', laws checked 2; steps: a 5')")
    assert done.returncode == 0 and list(tmp_path.iterdir()) == []
    assert done.stdout.endswith("0 failed; runs 24, laws checked 6\n")


@pytest.mark.parametrize("fault", ["open('crash', 'w').close(); sys.exit(3)", "open('crash', 'w').close()"])
def test_a_process_that_fails_or_counts_nothing_is_shown(fault: str, tmp_path: Path) -> None:
    code = f"import sys\nif sys.argv[1] == '8':\n    {fault}\nelse:\n    print('runs 1')"
    done = in_parallel(tmp_path, code)
    assert done.returncode == 1 and "1 failed; runs 2" in done.stdout
    assert [file.relative_to(tmp_path) for file in tmp_path.rglob("*")] == [Path("8"), Path("8/crash")]


def test_the_fuzzer_of_the_gpu_decoder_starts(tmp_path: Path) -> None:
    """Run it as a program: the tests import its parts with a path of their own. It stops at the missing argument."""
    done = subprocess.run(
        [sys.executable, FUZZ / "gpu.py"], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=HANG_S
    )
    assert "IndexError" in done.stderr and "ModuleNotFoundError" not in done.stderr


def test_the_program_of_containers_finds_nothing_in_a_second(tmp_path: Path) -> None:
    """Link the sources of `fuzz/run.sh` and run them on mutations of the seed files. The laws hold in this run too."""
    subprocess.run([sys.executable, FUZZ / "make_container_corpus.py", tmp_path / "corpus"], check=True, timeout=HANG_S)
    program = linked(tmp_path, "container")
    files = sorted(map(str, (tmp_path / "corpus").iterdir()))
    done = subprocess.run(
        [program, "1", "1", *files], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("runs "), done.stderr
