# SPDX-License-Identifier: Apache-2.0
"""The servers of the guide, as its page has them, on this machine: `make test-servers`."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.photographs import write_photographs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "servers.md"
pytestmark = pytest.mark.leaks("the servers keep threads and connections")
SERVE = """
if __name__ == "__main__":
    import sys

    litserve.LitServer(api, accelerator="cpu").run(port=int(sys.argv[1]), host="127.0.0.1", generate_client_file=False)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page's blocks as one program, which serves by LitServe if it is run."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    path = tmp_path_factory.mktemp("servers") / "servers_of_the_guide.py"
    path.write_text("\n".join(blocks) + SERVE, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(program: Path) -> Iterator[dict[str, Any]]:
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(program.read_text(encoding="utf-8"), str(program), "exec"), names)
    yield names
    names["endpoint"].close()


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    folder = write_photographs(tmp_path_factory.mktemp("photographs"), per_class=4)
    return [path.read_bytes() for path in sorted(folder.rglob("*.jpg"))]


@contextlib.contextmanager
def served(program: Path, health: str, *command: str) -> Iterator[str]:
    """Start a server of the program and yield its address."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    log = program.with_suffix(".log")
    with log.open("w") as out:
        line = [sys.executable, *command, port]
        server = subprocess.Popen(line, stdout=out, stderr=out, cwd=program.parent, start_new_session=True)
    try:
        _wait(f"http://127.0.0.1:{port}{health}", server, log)
        yield f"http://127.0.0.1:{port}/predict"
    finally:
        os.killpg(server.pid, signal.SIGTERM)  # LitServe's other processes too, which outlive it
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(timeout=20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait(timeout=20)


def test_fastapi(page: dict[str, Any], program: Path, contents: list[bytes]) -> None:
    want = [float(image.mean()) for image in page["endpoint"](contents)]
    served_app = served(program, "/docs", "-m", "uvicorn", f"{program.stem}:app", "--port")
    with served_app as address, ThreadPoolExecutor(4) as pool:
        sent = [*contents, b"not an image"]
        answers = list(pool.map(lambda c: httpx.post(address, files={"file": c}, timeout=60), sent))
    assert [a.json()["mean"] for a in answers[:-1]] == want
    assert answers[-1].status_code == 422 and "expected an image" in answers[-1].json()["detail"]


def test_litserve(page: dict[str, Any], program: Path, contents: list[bytes]) -> None:
    want = [float(image.mean()) for image in page["endpoint"](contents)]

    with served(program, "/health", str(program)) as address:

        def send(content: bytes) -> Any:
            return httpx.post(address, json={"content": base64.b64encode(content).decode()}, timeout=60).json()

        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(send, [*contents, b"not an image"]))
    assert [a["mean"] for a in answers[:-1]] == pytest.approx(want, abs=1e-6)
    assert "expected an image" in answers[-1]["error"]


def _wait(address: str, server: Any, log: Path) -> None:
    for _ in range(600):
        assert server.poll() is None, log.read_text()
        try:
            if httpx.get(address, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    pytest.fail(log.read_text())
