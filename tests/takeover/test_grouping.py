# SPDX-License-Identifier: Apache-2.0
"""Workers' preparation of a batch for a GPU: forms, recipes of single files, groups."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stoker.frontends.torchvision.gpu import grouping
from stoker.frontends.torchvision.ir import packing, steps
from stoker.frontends.torchvision.ir.recipe import Node
from stoker.frontends.torchvision.ir.tables import Table
from stoker.frontends.torchvision.tensors.tensor import LazyTensor, image_tensor
from stoker.frontends.torchvision.transport.source import Source


def decoded(channels: int = 3) -> Node:
    return Node.decode(Source(np.zeros(1, np.uint8)), (60, 40), channels)


def test_forms_of_chains() -> None:
    root = decoded(1)
    color = root.then(steps.Spread(), channels=3)
    part = color.then(steps.Resize(20, 16, 1.0, 30.0, 0.0, 30.0, 2, 0), (16, 20))
    assert grouping.find_root(root) is root
    for node in (part, color.then(steps.Transpose(2), (40, 60)), color.then(steps.Equalize())):
        assert grouping.find_root(node) is root
    assert grouping.find_root(color.then(steps.Mix(None, ((part.then(steps.Hue(3)), None),)))) is root
    assert grouping.find_root(color.then(steps.Mix(None, ((decoded(), None),)))) is None, "of another image"
    assert grouping.find_root(color.then(steps.StorePixels(0, 0))) is None, "a step that the GPU does not know"
    assert grouping.find_root(Node.raw(np.zeros(12, np.uint8), (2, 2), 3)) is None


def test_a_single_chain_is_written_as_any_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    root = decoded()
    crop = root.then(steps.Crop(3, 5, 43, 35), (40, 30))
    resized = crop.then(steps.Resize(16, 16, 0.0, 30.0, 0.0, 40.0, 1, 0), (16, 16))
    table, values = Table(torch.rand(3, 1, 256)), np.arange(256, dtype=np.uint8)
    chains = [
        root,
        crop,
        resized,
        resized.then(steps.Crop(2, 3, 9, 9), (7, 6)),
        crop.then(steps.Crop(1, 1, 5, 5), (4, 4)),
    ]
    chains += [root.then(steps.Transpose(0)), resized.then(steps.Hue(3)).then(steps.Map(values))]
    rows = [packing.Row(node, x, 0, 64 * i) for i, node in enumerate(chains) for x in (None, table)]
    rows += [packing.Row(Node.pixels(np.zeros(36, np.uint8), (4, 3), 3), None, 0, 0)]
    quick = [packing.pack_single([row]) for row in rows]
    assert sum(packing._pack_chain(row) is not None for row in rows) == 12
    monkeypatch.setattr(packing, "_pack_chain", lambda row: None)
    for a, row in zip(quick, rows, strict=True):
        b = packing.pack_single([row])
        assert np.array_equal(a.numbers, b.numbers) and np.array_equal(a.tables, b.tables)
        assert tuple(a.window) == tuple(b.window)


def test_groups_of_a_worker_are_used_while_they_match() -> None:
    first = image_tensor(decoded())
    tensors = [LazyTensor([first._rows[0], *image_tensor(decoded())._rows], (2,)), image_tensor(decoded())]
    grouping.attach_groups(tensors)
    groups = grouping.received_groups(tensors)
    assert groups is not None and len(groups.rest) == 2

    def arrived() -> list[LazyTensor]:
        return [grouping.receive(t._rows, t._lead, groups, n) for n, t in enumerate(tensors)]

    assert grouping.received_groups(arrived()) is groups
    assert grouping.received_groups(arrived()[::-1]) is None and grouping.received_groups(arrived()[:1]) is None
    assert grouping.received_groups([arrived()[0], image_tensor(decoded())]) is None
    changed = arrived()
    changed[1]._rows = list(changed[1]._rows)
    assert grouping.received_groups(changed) is None
    again = arrived()
    grouping.attach_groups(again)
    assert grouping.received_groups([again[0], arrived()[1]]) is None, "of two batches"
