# SPDX-License-Identifier: Apache-2.0
"""Addresses of objects: ``s3://``, ``gs://``, ``az://``, ``http://``, ``https://``."""

from __future__ import annotations

import os
from urllib.parse import quote, urlsplit

from ..contract.errors import ArgumentError
from ..contract.text import brief

SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https")


def is_remote(path: str) -> bool:
    """Return whether a path is the address of an object."""
    return "://" in path and path.partition("://")[0].lower() in SCHEMES


def require_address(name: str, path: str, *, may_be_bucket: bool = False) -> None:
    """Raise ArgumentError for an address that cannot be read, or that has credentials in it.

    Args:
        name: name of the argument.
        path: the address.
        may_be_bucket: accept addresses without a path, for folders of objects.
    """
    scheme = path.partition("://")[0]
    if scheme.lower() not in SCHEMES:
        raise ArgumentError(
            f"expected paths of files, or addresses of {', '.join(SCHEMES)} as `{name}`, got {scheme}://..."
        )
    parts = urlsplit(path)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ArgumentError(
            f"expected an address without user, password, query and fragment as `{name}`, got one with some of them "
            f"({scheme}://{parts.hostname}/...). Credentials come from the environment, such as AWS_ACCESS_KEY_ID"
        )
    if not parts.netloc or not (may_be_bucket or parts.path.strip("/")):
        raise ArgumentError(f"expected the address of an object as `{name}`, got {brief(path)}")


def join(root: str, name: str) -> str:
    """Return the path of a file, or the address of an object, relative to a folder, which may be an address.

    Args:
        root: the folder.
        name: name in it, in which "%" is an ordinary character. An absolute name stays, and so does an address.
    """
    if is_remote(name) or not is_remote(root):
        return name if is_remote(name) else os.path.join(root, name)
    return name if os.path.isabs(name) else f"{root.rstrip('/')}/{quote(name, errors='surrogateescape')}"


def folder_of(path: str) -> str:
    """Return the folder of a file, or the address above an object."""
    return path.rpartition("/")[0] if is_remote(path) else os.path.dirname(path)
