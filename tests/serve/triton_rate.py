# SPDX-License-Identifier: Apache-2.0
"""Requests per second of an exported model in Triton and of the endpoint in one process, at a batch of 32.

``python -m tests.serve.triton_rate FOLDER_OF_JPEGS``, in the environment of ``make test-triton``. The pipeline decodes,
resizes to 224x224 and normalises; its result is the mean of the image, as small as a classifier's, or the image itself,
602 kB of float32. Each request has 32 files. Two clients are in flight, so that one request waits in the server, and
both ways alternate, in turns of ``--seconds``. ``--instances``: processes that run the model, with ``--threads``
threads each. ``--transport``: the files go through HTTP by Triton's client, or by a socket to which they are written
from where they are, or the client writes them into memory that it shares with the server. ``--clients``: requests in
flight. ``--client-cores``: cores that only the clients use, while the endpoint and the server have the others. The
processor time of a request shows which process has the rest.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import socket
import statistics
import struct
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.http as client
from tritonclient import utils
from tritonclient.utils import shared_memory

from stoker import fn, pipeline_def, types
from stoker.serve import Endpoint
from stoker.triton import export
from tests.serve.triton_process import running

BATCH, TURNS = 32, 5
BAR = 0.8


Ask = Callable[[list[bytes]], Any]  # returns the server's answer to one request


@pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, seed=3)
def preprocess(whole: bool) -> Any:
    """Return a normalised image, or its mean."""
    content = fn.external_source(name="content", dtype=types.UINT8, ndim=1)
    images = fn.resize(fn.decoders.image(content), size=(224, 224))
    images = fn.crop_mirror_normalize(images, mean=[120.0], std=[60.0])
    return images if whole else fn.reductions.mean(images)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.serve.triton_rate", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--instances", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--client-cores", type=int, default=0)
    parser.add_argument("--transport", choices=tuple(TRANSPORTS), default="http")
    parser.add_argument("--results", nargs="+", choices=("means", "images"), default=["means", "images"])
    arguments = parser.parse_args()
    files = sorted(p for p in arguments.folder.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    contents = [p.read_bytes() for p in files]
    requests = [contents[i : i + BATCH] for i in range(0, len(contents) - BATCH + 1, BATCH)]
    print(f"{time.strftime('%d %B %Y %H:%M', time.gmtime())} UTC, batch {BATCH}, {len(contents)} files, {arguments}")
    open_client = TRANSPORTS[arguments.transport]
    cores = sorted(os.sched_getaffinity(0))
    count = arguments.client_cores
    if not 0 <= count < len(cores):
        parser.error(f"expected `--client-cores` from 0 to {len(cores) - 1}, got {count}")
    client_cores = cores[len(cores) - count :] or cores
    os.sched_setaffinity(0, cores[: len(cores) - count])  # this thread, those that it starts, and the server
    for results in arguments.results:
        whole = results == "images"
        with tempfile.TemporaryDirectory() as name:
            with preprocess(whole, num_threads=arguments.threads) as pipe:
                models, count = Path(name) / "models", arguments.instances
                model = export(pipe, models, "preprocess", ["y"], max_queue_delay_us=0, instances=count)
            with (model / "config.pbtxt").open("a", encoding="utf-8") as config:
                config.write(f'parameters {{ key: "num_threads" value {{ string_value: "{arguments.threads}" }} }}\n')
            with running(Path(name)) as address, Endpoint(preprocess(whole), ["y"]) as endpoint:
                check(address, endpoint, requests[0], open_client)
                settings = (open_client, arguments.clients, client_cores, arguments.seconds)
                measure(results, address, endpoint, requests, *settings)


def table_of(request: list[bytes]) -> Any:
    """Return a request's files as an array of one column."""
    return np.array([[c] for c in request], dtype=object)


@contextlib.contextmanager
def over_http(address: str, number: int) -> Iterator[Ask]:
    """Connect a client that sends the files."""
    with client.InferenceServerClient(address, network_timeout=60) as connection:

        def ask(request: list[bytes]) -> Any:
            rows = client.InferInput("content", [len(request), 1], "BYTES")
            rows.set_data_from_numpy(table_of(request))
            return connection.infer("preprocess", [rows]).as_numpy("y")

        yield ask


@contextlib.contextmanager
def from_socket(address: str, number: int) -> Iterator[Ask]:
    """Connect a client that sends the files from where they are, without a copy in the client."""
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection, connection.makefile("rb") as answers:

        def ask(request: list[bytes]) -> Any:
            sizes = [struct.pack("<I", len(content)) for content in request]
            binary = sum(map(len, sizes)) + sum(map(len, request))
            tensor = {"name": "content", "shape": [len(request), 1], "datatype": "BYTES"}
            head = {
                "inputs": [{**tensor, "parameters": {"binary_data_size": binary}}],
                "outputs": [{"name": "y", "parameters": {"binary_data": True}}],
            }
            described = json.dumps(head).encode()
            lines = [
                "POST /v2/models/preprocess/infer HTTP/1.1", f"Host: {address}",
                "Content-Type: application/octet-stream", f"Inference-Header-Content-Length: {len(described)}",
                f"Content-Length: {len(described) + binary}", "\r\n",
            ]  # fmt: skip
            parts = [x for pair in zip(sizes, request, strict=True) for x in pair]
            send_all(connection, ["\r\n".join(lines).encode(), described, *parts])
            status = answers.readline()
            headers = {}
            while line := answers.readline().strip():
                name, _, value = line.decode().partition(":")
                headers[name.lower()] = value.strip()
            body = answers.read(int(headers["content-length"]))
            if b" 200 " not in status:
                raise RuntimeError(f"the server answered {status!r}: {body!r}")
            size = int(headers["inference-header-content-length"])
            (output,) = json.loads(body[:size])["outputs"]
            return np.frombuffer(body, np.float32, offset=size).reshape(output["shape"])

        yield ask


def send_all(connection: socket.socket, parts: list[bytes]) -> None:
    """Send parts one after the other."""
    views = deque(memoryview(part) for part in parts)
    while views:
        sent = connection.sendmsg(itertools.islice(views, 64))
        while views and sent >= len(views[0]):
            sent -= len(views.popleft())
        if sent:
            views[0] = views[0][sent:]


@contextlib.contextmanager
def over_shared_memory(address: str, number: int) -> Iterator[Ask]:
    """Connect a client that writes the files into a region of memory which the server maps."""
    size, name = 32 << 20, f"stoker_rate_{number}"  # for the files, and as much for the result
    with client.InferenceServerClient(address, network_timeout=60) as connection:
        region = shared_memory.create_shared_memory_region(name, f"/{name}", 2 * size)
        try:
            connection.register_system_shared_memory(name, f"/{name}", 2 * size)

            def ask(request: list[bytes]) -> Any:
                packed = utils.serialize_byte_tensor(table_of(request))
                shared_memory.set_shared_memory_region(region, [packed])
                rows = client.InferInput("content", [len(request), 1], "BYTES")
                rows.set_shared_memory(name, len(packed.item()))
                y = client.InferRequestedOutput("y", binary_data=True)
                y.set_shared_memory(name, size, offset=size)
                shape = connection.infer("preprocess", [rows], outputs=[y]).get_output("y")["shape"]
                return shared_memory.get_contents_as_numpy(region, np.float32, shape, offset=size)

            yield ask
        finally:
            connection.unregister_system_shared_memory(name)
            shared_memory.destroy_shared_memory_region(region)


Transport = Callable[[str, int], contextlib.AbstractContextManager[Ask]]
TRANSPORTS: dict[str, Transport] = {"http": over_http, "socket": from_socket, "shared": over_shared_memory}


def check(address: str, endpoint: Endpoint, request: list[bytes], open_client: Transport) -> None:
    """Compare both answers to a request."""
    with open_client(address, 0) as ask:
        want = np.stack([r["y"] for r in endpoint(request)])
        np.testing.assert_array_equal(ask(request).reshape(want.shape), want)


def processor_times() -> dict[str, float]:
    """Return the seconds of processor time of this process and its descendants until now, by the program's name."""
    names, parents, seconds = {}, {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = entry.read_text().partition("(")[2].rpartition(")")
            fields, number = rest.split(), int(entry.parent.name)
            names[number], parents[number] = name, int(fields[1])
            seconds[number] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    family, found = {os.getpid()}, {"this process": seconds[os.getpid()]}
    while new := {number for number, parent in parents.items() if parent in family and number not in family}:
        family |= new
        for number in new:
            found[names[number]] = found.get(names[number], 0.0) + seconds[number]
    return found


def measure(
    label: str,
    address: str,
    endpoint: Endpoint,
    requests: list[list[bytes]],
    open_client: Transport,
    clients: int,
    client_cores: list[int],
    duration: float,
) -> None:
    """Print the rate of both, the ratio, and the processor time of a request."""

    def through_triton(seconds: float) -> int:
        def loop(first: int) -> int:
            os.sched_setaffinity(0, client_cores)  # this thread
            done = 0
            with open_client(address, first) as ask:
                while time.perf_counter() < end:
                    ask(requests[(first + done) % len(requests)])
                    done += 1
            return done

        end = time.perf_counter() + seconds
        with ThreadPoolExecutor(clients) as pool:
            return sum(pool.map(loop, range(clients)))

    def in_process(seconds: float) -> int:
        done, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            endpoint(requests[done % len(requests)])
            done += 1
        return done

    ways: dict[str, Callable[[float], int]] = {"in process": in_process, "Triton": through_triton}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    spent: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for turn in range(TURNS):
        for name in ways if turn % 2 == 0 else reversed(ways):
            before, start = processor_times(), time.perf_counter()
            done = ways[name](duration)
            rates[name].append(done * BATCH / (time.perf_counter() - start))
            spent[name].append({p: 1e3 * (s - before.get(p, 0.0)) / done for p, s in processor_times().items()})
    own, served = (statistics.median(rates[name]) for name in ways)
    print(f"{label}: in process {own:,.0f} images/s, Triton {served:,.0f}, ratio {served / own:.2f}; bar {BAR}: "
          f"{'met' if served >= BAR * own else 'missed'}")  # fmt: skip
    for name, turns in spent.items():
        medians = {process: statistics.median(t.get(process, 0.0) for t in turns) for process in turns[-1]}
        text = ", ".join(f"{process} {ms:.1f}" for process, ms in medians.items() if ms >= 0.05)
        print(f"  {name}: ms of processor time a request: {text}", flush=True)


if __name__ == "__main__":
    main()
