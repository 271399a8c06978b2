# SPDX-License-Identifier: Apache-2.0
"""Trainings on several machines that torchrun starts, here as agents on this one: `make trainers`.

Every agent is a node of its own. They meet at 127.0.0.1. With arguments, this module is one rank.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import torch.distributed as dist

from stoker.torch import Loader
from tests.idle_clock import HANG_S
from tests.photographs import write_photographs
from tests.run.pipelines import ROOT, environment, files_of, training

PAGE = ROOT / "docs" / "guides" / "trainers.md"
STEPS = 2


def run_nodes(nodes: int, per_node: int, *command: str, folder: Path = ROOT) -> list[str]:
    """Run a program on nodes; each must succeed. Return what they print."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{s.getsockname()[1]}"
    torchrun = [
        sys.executable, "-m", "torch.distributed.run", "--nnodes", str(nodes), "--nproc-per-node", str(per_node),
        "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-id", "test", "--local-addr", "127.0.0.1",
    ]  # fmt: skip
    variables = environment() | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    agents = [
        subprocess.Popen(
            [*torchrun, *command],
            cwd=folder,
            env=variables,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for _ in range(nodes)
    ]
    try:
        printed = [agent.communicate(timeout=HANG_S - 20)[0] for agent in agents]
    finally:
        for agent in agents:
            agent.terminate()  # an agent ends its ranks, which are in sessions of their own
        for agent in agents:
            try:
                agent.wait(timeout=20)
            except subprocess.TimeoutExpired:
                agent.kill()
                agent.wait(timeout=20)
    assert [agent.returncode for agent in agents] == [0] * nodes, "\n".join(printed)
    return printed


def test_two_nodes_and_then_another_number_of_ranks(jpegs: Path, tmp_path: Path) -> None:
    """The ranks of two nodes take a prefix of one order; those of one node continue it from their state."""
    with training(files_of(jpegs)[:12]) as pipe:
        whole = [int(label) for _, labels in Loader(pipe) for label in labels]
    shares = []
    for nodes, ranks, state in ((2, 1, ""), (1, 3, str(tmp_path / "0.json"))):
        command = "-m", "tests.frameworks.nodes_loops", str(jpegs), str(tmp_path), state
        run_nodes(nodes, ranks, *command)
        found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(nodes * ranks)]
        assert {share["node"] for share in found} == set(range(nodes))
        assert len({json.dumps(share["state"]) for share in found}) == 1, "the state of any rank serves all"
        shares.append([share["rows"] for share in found])
        (tmp_path / "0.json").write_text(json.dumps(found[0]))
    before, after = ([row for turn in zip(*parts, strict=True) for row in turn] for parts in shares)
    assert before == whole[: 2 * STEPS * 2]
    assert after[:4] == whole[2 * STEPS * 2 :] and len(after) == 6, "two rows fill the last steps of the three ranks"


def test_the_script_of_the_page_on_two_nodes(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[:2]
    assert "DistributedDataParallel" in blocks[1]
    photographs = write_photographs(tmp_path / "photographs", per_class=16)
    script = tmp_path / "train.py"
    script.write_text("\n".join([f"data_dir = {str(photographs)!r}", *blocks]), encoding="utf-8")
    printed = [re.findall(r"epoch \d: [0-9.]+", text) for text in run_nodes(2, 1, str(script), folder=tmp_path)]
    assert len(printed[0]) == 2 and printed[0] == printed[1], "both nodes evaluated every row once"


def main(root: str, folder: str, saved: str) -> None:
    """Run one rank: some batches, or the rest of an epoch from a state."""
    dist.init_process_group("gloo")
    pipe = training(files_of(Path(root))[:12], batch_size=2 if not saved else 1, shards="launcher")
    loader, rows = Loader(pipe), []
    if saved:
        loader.load_state_dict(json.loads(Path(saved).read_text())["state"])
    dist.barrier()  # before a rank overwrites the state that all read
    for number, (_, labels) in enumerate(loader):
        rows += labels.tolist()
        if not saved and number + 1 == STEPS:
            break
    found = {"rows": rows, "state": loader.state_dict(), "node": int(os.environ["GROUP_RANK"])}
    (Path(folder) / f"{dist.get_rank()}.json").write_text(json.dumps(found))
    loader.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*[*sys.argv[1:], ""][:3])
