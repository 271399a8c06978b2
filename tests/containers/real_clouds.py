# SPDX-License-Identifier: Apache-2.0
"""Addresses gs:// and az:// through a server of this test, and folders whose list has several pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from stoker import fn
from tests.containers.data import rows
from tests.containers.real_stores import WANTED as RECORDS
from tests.containers.real_stores import Server, of_tfrecord, tfrecords
from tests.containers.real_stores import cache as cache
from tests.containers.real_stores import deadline as deadline
from tests.containers.real_stores import s3 as s3
from tests.containers.real_stores import server as server

COUNT, PAGE = 2005, 1000
pytestmark = pytest.mark.leaks("obstore's threads live as long as the process")
DATE = "2024-01-01T00:00:00Z"


def content(i: int) -> bytes:
    return str(i).encode()


WANTED = [content(i) for i in range(COUNT)]


def google(monkeypatch: pytest.MonkeyPatch, folder: Path, url: str) -> str:
    """Let gs:// lead to the server. Return the part of its paths that a bucket has."""
    key = {"gcs_base_url": url, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
    (folder / "key.json").write_text(json.dumps(key))
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(folder / "key.json"))
    monkeypatch.setenv("GOOGLE_ALLOW_HTTP", "true")
    return "training"


def azure(monkeypatch: pytest.MonkeyPatch, folder: Path, url: str) -> str:
    """Let az:// lead to the server. Return the part of its paths that a container has."""
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", url)
    return "devstoreaccount1/training"


CLOUDS: dict[str, Callable[[pytest.MonkeyPatch, Path, str], str]] = {"gs": google, "az": azure}


def list_of_google(names: list[str], sizes: list[int], following: str) -> str:
    found = "".join(
        f"<Contents><Key>{name}</Key><LastModified>{DATE}</LastModified><Size>{size}</Size><ETag>&quot;1&quot;</ETag>"
        "</Contents>"
        for name, size in zip(names, sizes, strict=True)
    )
    token = f"<NextContinuationToken>{following}</NextContinuationToken>" if following else ""
    return f"<ListBucketResult>{token}{found}</ListBucketResult>"


def list_of_azure(names: list[str], sizes: list[int], following: str) -> str:
    found = "".join(
        f"<Blob><Name>{name}</Name><Properties><Last-Modified>Mon, 01 Jan 2024 00:00:00 GMT</Last-Modified>"
        f"<Content-Length>{size}</Content-Length><Content-Type>x</Content-Type><Etag>1</Etag></Properties></Blob>"
        for name, size in zip(names, sizes, strict=True)
    )
    return f"<EnumerationResults><Blobs>{found}</Blobs><NextMarker>{following}</NextMarker></EnumerationResults>"


LISTS = {"gs": list_of_google, "az": list_of_azure}


class Cloud:
    """Answers of a store: lists in pages of 1,000 names, and objects whose names come with escapes."""

    def __init__(self, scheme: str, bucket: str) -> None:
        self.scheme, self.bucket, self.begins = scheme, bucket, list[int]()

    def answer(self, handler: Any, path: str, count: int) -> bool:
        parts = urlsplit(path)
        asked = parse_qs(parts.query)
        if "list-type" not in asked and "list" not in asked.get("comp", []):
            handler.path = unquote(parts.path)
            return False
        prefix = asked.get("prefix", [""])[0]
        objects = {k.removeprefix(f"/{self.bucket}/"): v for k, v in handler.server.objects.items()}
        names = sorted(name for name in objects if name.startswith(prefix))
        begin = int(asked.get("continuation-token", asked.get("marker", ["0"]))[0])
        self.begins.append(begin)
        chosen = names[begin : begin + PAGE]
        following = str(begin + PAGE) if begin + PAGE < len(names) else ""
        body = LISTS[self.scheme](chosen, [len(objects[name]) for name in chosen], following).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/xml")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        return True


@pytest.fixture
def clouds(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Cloud]:
    def make(scheme: str) -> Cloud:
        cloud = Cloud(scheme, CLOUDS[scheme](monkeypatch, tmp_path, f"http://127.0.0.1:{server.server_port}"))
        server.fault = cloud.answer
        return cloud

    return make


@pytest.mark.parametrize("scheme", CLOUDS)
def test_records_of_an_object(scheme: str, clouds: Callable[[str], Cloud], server: Server) -> None:
    server.put(f"{clouds(scheme).bucket}/records", tfrecords())
    assert of_tfrecord(f"{scheme}://training/records") == RECORDS


@pytest.mark.parametrize("scheme", CLOUDS)
def test_a_folder_of_several_pages(scheme: str, clouds: Callable[[str], Cloud], server: Server) -> None:
    cloud = clouds(scheme)
    for i in range(COUNT):
        server.put(f"{cloud.bucket}/many/class/{i:05}", content(i))
    server.put(f"{cloud.bucket}/other/x", b"not in the folder")
    found = rows(lambda: fn.readers.file(file_root=f"{scheme}://training/many", file_filters="*"), batch_size=64)
    assert [r[0].tobytes() for r in found] == WANTED
    assert cloud.begins == [0, PAGE, 2 * PAGE]


def test_a_folder_of_several_pages_in_s3(s3: Any) -> None:
    for i in range(PAGE + 5):
        s3.put_object(Bucket="training", Key=f"many/class/{i:05}", Body=content(i))
    assert s3.list_objects_v2(Bucket="training", Prefix="many/")["IsTruncated"], "the list has several pages"
    found = rows(lambda: fn.readers.file(file_root="s3://training/many", file_filters="*"), batch_size=64)
    assert [r[0].tobytes() for r in found] == WANTED[: PAGE + 5]
