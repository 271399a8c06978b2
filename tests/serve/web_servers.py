# SPDX-License-Identifier: Apache-2.0
"""The servers of the guide, as its page has them, on this machine: `make test-servers`.

`make test-ray` runs its part for Ray Serve.
"""

from __future__ import annotations

import base64
import contextlib
import os
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
from tests.serve.guide import blocks_for

pytestmark = pytest.mark.leaks("the servers keep threads and connections")
SERVE = """
if __name__ == "__main__":
    import sys

    litserve.LitServer(api, accelerator="cpu").run(port=int(sys.argv[1]), host="127.0.0.1", generate_client_file=False)
"""


SERVE_KSERVE = """
if __name__ == "__main__":
    import sys

    kserve.ModelServer(http_port=int(sys.argv[1]), enable_grpc=False, workers=1).start([Preprocess("preprocess")])
"""


def write_program(package: str, serve: str, folder: Path) -> Path:
    """Write the blocks for a package as a program that serves if it is run."""
    path = folder / f"{package}_of_the_guide.py"
    path.write_text("\n".join([*blocks_for(package), serve]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page's program for FastAPI and LitServe, which serves by LitServe if it is run."""
    return write_program("litserve", SERVE, tmp_path_factory.mktemp("servers"))


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


def test_kserve(page: dict[str, Any], contents: list[bytes], tmp_path: Path) -> None:
    want = [float(image.mean()) for image in page["endpoint"](contents)]
    program = write_program("kserve", SERVE_KSERVE, tmp_path)
    with served(program, "/v2/health/ready", str(program)) as address:
        models = address.removesuffix("/predict") + "/v2/models/preprocess/infer"

        def send(*parts: bytes) -> httpx.Response:
            texts = [base64.b64encode(part).decode() for part in parts]
            rows = {"name": "content", "datatype": "BYTES", "shape": [len(texts)], "data": texts}
            return httpx.post(models, json={"inputs": [rows]}, timeout=60)

        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(send, contents))
        together, bad = send(*contents[:3]), send(b"not an image")
    assert [a.json()["outputs"][0]["data"] for a in answers] == [[mean] for mean in want]
    assert together.json()["outputs"][0]["data"] == want[:3]
    assert bad.status_code == 400 and "expected an image" in bad.text


def test_bentoml(page: dict[str, Any], contents: list[bytes], tmp_path: Path) -> None:
    want = [float(image.mean()) for image in page["endpoint"](contents)]
    program = write_program("bentoml", "", tmp_path)
    command = ("-m", "bentoml", "serve", f"{program.stem}:Preprocessing", "--host", "127.0.0.1", "--port")
    with served(program, "/readyz", *command) as address:

        def send(*parts: bytes) -> Any:
            texts = [base64.b64encode(part).decode() for part in parts]
            return httpx.post(address, json={"contents": texts}, timeout=60).json()

        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(send, [*contents, b"not an image"]))
        together = send(*contents[:3])
    assert [a for (a,) in answers[:-1]] == [{"mean": mean} for mean in want]
    assert "expected an image" in answers[-1][0]["error"]
    assert [a["mean"] for a in together] == want[:3]


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
