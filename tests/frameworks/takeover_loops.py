# SPDX-License-Identifier: Apache-2.0
"""Scripts that ``accelerate launch`` starts in two processes: each is taken over, or one line says that it is not.

`make trainers` runs this test in an environment of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.idle_clock import HANG_S
from tests.takeover.conftest import write_files

ROOT = Path(__file__).resolve().parents[2]
TRAIN = """
import sys
import torch
import torchvision.datasets as datasets
import torchvision.transforms as transforms
from accelerate import Accelerator

import stoker.torchvision

torch.manual_seed(3)
accelerator = Accelerator(cpu=True)
data = datasets.ImageFolder(sys.argv[1], transforms.Compose([transforms.Resize((32, 32)), transforms.ToTensor()]))
model = torch.nn.Linear(3, 2)
loader = torch.utils.data.DataLoader(data, batch_size=2)
model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), loader)
for images, labels in loader:
    assert type(images) is torch.Tensor
    loss = torch.nn.functional.cross_entropy(model(images.mean((2, 3))), labels)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
native = sum(n for what, n in stoker.torchvision.report().counts.items() if "natively" in what)
values = [round(float(x), 6) for x in model.state_dict()[next(iter(model.state_dict()))].flatten()]
words = accelerator.process_index, accelerator.num_processes, stoker.torchvision.is_enabled(), native > 0, *values
sys.stdout.write(" ".join(map(str, ("rank", *words))) + "\\n")  # in one call, because both ranks print unbuffered
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("takeover") / "files")


def launch(folder: Path, *words: str) -> tuple[list[list[str]], str]:
    """Return the words that the ranks print, in order, and what was printed to the standard error."""
    (folder / "site").mkdir(exist_ok=True)
    (folder / "site" / "sitecustomize.py").write_text("import tests.takeover.declared\n")
    (folder / "train.py").write_text(TRAIN)
    before = os.environ.get("PYTHONPATH", "")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (folder / "site", ROOT, ROOT / "tests", before)))}
    env["HF_HOME"] = str(folder)
    done = subprocess.run(
        [sys.executable, *words], env=env, cwd=folder, capture_output=True, text=True, timeout=3 * HANG_S
    )
    ranks = sorted(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("rank "))
    assert done.returncode == 0 and len(ranks) == 2, f"{done.stdout}\n{done.stderr}"
    return ranks, done.stderr


ACCELERATE = ("-m", "accelerate.commands.launch")
# Two processes need this option: with --cpu, Accelerate starts one. The script uses the CPU.
OPTIONS = ("--multi_gpu", "--num_processes", "2", "--num_machines", "1")
OPTIONS += ("--mixed_precision", "no", "--dynamo_backend", "no")


def test_each_process_is_taken_over(tmp_path: Path, files: Path) -> None:
    untouched, _ = launch(tmp_path, *ACCELERATE, *OPTIONS, "train.py", str(files))
    taken_over, _ = launch(tmp_path, *ACCELERATE, *OPTIONS, "-m", "stoker.torchvision", "train.py", str(files))
    assert [words[:4] for words in untouched] == [["0", "2", "False", "False"], ["1", "2", "False", "False"]]
    assert [words[:4] for words in taken_over] == [["0", "2", "True", "True"], ["1", "2", "True", "True"]]
    assert [words[4:] for words in taken_over] == [words[4:] for words in untouched]


def test_a_launcher_that_is_taken_over_itself_says_so(tmp_path: Path, files: Path) -> None:
    words, error = launch(
        tmp_path, "-m", "stoker.torchvision", "-m", "accelerate.commands.launch", *OPTIONS, "train.py", str(files)
    )
    assert [word[2] for word in words] == ["False", "False"]
    lines = [line for line in error.splitlines() if line.startswith("stoker.torchvision:")]
    assert len(lines) == 1 and "accelerate launch options -m stoker.torchvision script.py" in lines[0]
