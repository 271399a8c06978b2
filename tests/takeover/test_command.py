# SPDX-License-Identifier: Apache-2.0
"""``python -m stoker.torchvision``: a script runs like under Python, and wrong arguments are refused in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stoker.frontends.torchvision.hooks import script
from tests.complete import COMPLETE
from tests.forked import ForkServer

ROOT = Path(__file__).resolve().parents[2]
PLACES = """
import inspect, os, pickle, sys
import beside
class Here: pass
os.chdir('/')
print(__file__, sys.argv, beside.WHO, __name__, __spec__)
print(type(pickle.loads(pickle.dumps(Here()))), inspect.getsource(Here))
"""
FAILS = """
import sys
import tests.takeover.declared
import torchvision.datasets as datasets, torchvision.transforms as transforms
from torch.utils.data import DataLoader

def main():
    data = datasets.ImageFolder(sys.argv[1], transforms.Compose([transforms.Resize((32, 32)), transforms.ToTensor()]))
    for batch, (images, labels) in enumerate(DataLoader(data, batch_size=3, num_workers=2)):
        images.view(5, 7)

main()
"""


# torchvision's operators are declared first; the rest equals `python -m stoker.torchvision`.
LAUNCH = """
import tests.takeover.declared, runpy
runpy.run_module('stoker.torchvision', run_name='__main__', alter_sys=True)
"""


def with_options(options: list[str], *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ) | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    whole = [sys.executable, *options, "-W", "ignore", "-c", LAUNCH, *arguments]
    return subprocess.run(whole, cwd=cwd, env=environment, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "expected a script's path, or -m and a module's name, got nothing"),
        (("-x", "train.py"), "expected a script's path, or -m and a module's name, got '-x'"),
        (("-m",), "expected a module's name, got nothing"),
        (("--device",), "expected a device after --device, got nothing"),
        (("nowhere.py",), "got 'nowhere.py', which is not there"),
        (("--device", "gpu", "train.py"), """expected `device` "cpu", "cuda" or "cuda:" and a number, got 'gpu'"""),
        (("--device=", "train.py"), "and a number, got ''"),
    ],
)
def test_wrong_arguments(
    tmp_path: Path,
    arguments: tuple[str, ...],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "train.py").write_text("print('ran')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["stoker.torchvision", *arguments])
    with pytest.raises(SystemExit) as end:
        script.run()
    out, err = capsys.readouterr()
    assert (end.value.code, out) == (2, "")
    assert err.startswith("stoker.torchvision: ") and why in err


def test_a_script_finds_itself_and_its_neighbours(tmp_path: Path, forked: ForkServer) -> None:
    """A script finds its neighbours also through a link, and after changing the folder."""
    home, links = tmp_path / "home", tmp_path / "links"
    home.mkdir()
    links.mkdir()
    (home / "train.py").write_text(PLACES)
    (home / "beside.py").write_text("WHO = 'home'")
    (links / "beside.py").write_text("WHO = 'links'")
    (links / "run.py").symlink_to(home / "train.py")
    plain = subprocess.run(
        [sys.executable, "run.py", "-a"], cwd=links, capture_output=True, text=True, timeout=100, check=True
    )
    done = forked.run("-c", LAUNCH, "run.py", "-a", cwd=links)
    assert done.stdout == plain.stdout, done.stderr
    assert done.stdout.startswith(f"{links / 'run.py'} ['run.py', '-a'] home __main__ None\n")
    safe = with_options(["-P"], "run.py", "-a", cwd=links)
    assert "No module named 'beside'" in safe.stderr


def test_an_error_is_the_last_output(files: Path, tmp_path: Path, forked: ForkServer) -> None:
    """A failing script leaves its loader to the interpreter's exit."""
    (tmp_path / "train.py").write_text(FAILS)
    done = forked.run("-c", LAUNCH, "train.py", files, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == "RuntimeError: shape '[5, 7]' is invalid for input of size 9216"


SPAWNING = """
import os, sys, torch, stoker.torchvision
from torchvision.transforms import functional
from tests.takeover.scripts import classification, run

def work(rank, folder):
    images = run(classification(folder, 0))
    native = sum(n for what, n in stoker.torchvision.report().counts.items() if "natively" in what)
    print(rank, stoker.torchvision.is_enabled(), native > 0, len(images), flush=True)

if __name__ == "__main__":
    if "RANK" in os.environ:
        work(int(os.environ["RANK"]), sys.argv[-1])
        assert sys.argv[1:-1] == [f"--local-rank={os.environ['LOCAL_RANK']}"] * ("--local-rank" in sys.argv[1])
    else:
        torch.multiprocessing.spawn(work, (sys.argv[1],), nprocs=2)
        torch.multiprocessing.start_processes(work, (sys.argv[1],), nprocs=1)
"""


def with_torchvision(folder: Path) -> dict[str, str]:
    """Return an environment in which every Python process can import torchvision."""
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text("import tests.takeover.declared\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (folder / "site", ROOT, ROOT / "tests")))}


def test_spawned_processes_are_taken_over(tmp_path: Path, files: Path, forked: ForkServer) -> None:
    script_file = tmp_path / "train.py"
    script_file.write_text(SPAWNING)
    env = with_torchvision(tmp_path)
    done = forked.run("-m", "stoker.torchvision", script_file, files, env=env)
    assert sorted(done.stdout.split("\n")) == ["", "0 True True 5", "0 True True 5", "1 True True 5"], done.stderr


# The older launcher calls the newer one: `make test` runs it with one process.
@pytest.mark.parametrize(
    ("launcher", "processes"), [("torch.distributed.run", 2), ("torch.distributed.launch", 2 if COMPLETE else 1)]
)
def test_a_launcher_runs_the_module(
    tmp_path: Path, files: Path, launcher: str, processes: int, forked: ForkServer
) -> None:
    script_file = tmp_path / "train.py"
    script_file.write_text(SPAWNING)
    env = with_torchvision(tmp_path)
    options = ["--standalone", "--nproc-per-node", str(processes), "-m", "stoker.torchvision"]
    done = forked.run("-m", launcher, *options, script_file, files, env=env)
    assert sorted(done.stdout.split("\n")) == ["", *(f"{n} True True 5" for n in range(processes))], done.stderr


@pytest.mark.parametrize("name", ["torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"])
def test_a_launcher_that_is_taken_over_itself_is_reported(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["stoker.torchvision", "-m", name, "train.py"])
    monkeypatch.setattr(script, "enable", lambda device, **options: None)
    monkeypatch.setattr(script.runpy, "run_module", lambda *args, **kwargs: None)
    monkeypatch.setattr(script, "_search", lambda folder: None)
    script.run()
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "-m stoker.torchvision" in said and name in said


OPEN = """
import sys, threading, torch
import tests.takeover.scripts as scripts
import stoker.torchvision

class Cycle: pass

def main(folder, workers, persistent, take_over):
    if take_over:
        stoker.torchvision.enable()
    options = {"persistent_workers": True} if persistent else {}

    def opened():
        iterator = iter(scripts.classification(folder, workers, **options))
        next(iterator)
        return iterator

    def hold(iterator, started):
        started.set()
        threading.Event().wait()

    global kept, kept_loader
    kept = opened()
    scripts.kept = torch.kept = opened()  # modules lose their globals at different times
    cycle = Cycle()
    cycle.iterator, cycle.itself = opened(), cycle
    kept_loader = scripts.classification(folder, workers, **options)
    iter(kept_loader)
    started = threading.Event()
    threading.Thread(target=hold, args=(opened(), started), daemon=True).start()
    started.wait()
    print("end", flush=True)

if __name__ == "__main__":
    main(sys.argv[1], *(int(word) for word in sys.argv[2:]))
"""


@pytest.mark.parametrize(("workers", "persistent"), [(0, 0), (2, 0), (2, 1)])
def test_a_script_may_end_with_open_iterators(
    tmp_path: Path, files: Path, workers: int, persistent: int, forked: ForkServer
) -> None:
    """The interpreter's exit is as quiet as without the take-over, wherever the script keeps the iterators."""
    script_file = tmp_path / "train.py"
    script_file.write_text(OPEN)

    def ended(take_over: int) -> tuple[int, str, str]:
        done = forked.run(script_file, files, str(workers), str(persistent), str(take_over))
        said = [line for line in done.stderr.splitlines() if "done as without Stoker" not in line]
        return done.returncode, done.stdout, "\n".join(said)

    assert ended(take_over=0) == (0, "end\n", "")
    assert ended(take_over=1) == (0, "end\n", "")
