# SPDX-License-Identifier: Apache-2.0
"""Large results of torch's functions in large pages: tensors like torch's own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from stoker.frontends.torchvision.hooks import large_results
from stoker.frontends.torchvision.hooks.large_results import LargeResults

SIDE = 1100  # a mask of this side is large


def _patches(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(2, 550, 2, 550).permute(0, 2, 1, 3).unsqueeze(2).expand(2, 2, 3, 550, 550)


CALLS: dict[str, Callable[[], torch.Tensor]] = {
    "zeros": lambda: torch.zeros((SIDE, SIDE), dtype=torch.int64),
    "zeros by sides": lambda: torch.zeros(SIDE, SIDE, device="cpu"),
    "stack": lambda: torch.stack([torch.full((SIDE, SIDE), k) for k in range(3)]),
    "stack along 0": lambda: torch.stack([torch.full((SIDE, SIDE), k) for k in range(2)], dim=0),
    "cat": lambda: torch.cat([torch.full((k, SIDE, SIDE), k) for k in (1, 2)]),
    "reshape": lambda: _patches(torch.arange(SIDE * SIDE, dtype=torch.float32)).reshape(4, -1),
}
OTHERS: dict[str, Callable[[], torch.Tensor]] = {
    "small": lambda: torch.zeros(3, 4),
    "another axis": lambda: torch.stack([torch.ones(SIDE, SIDE)] * 2, dim=1),
    "types": lambda: torch.cat([torch.ones(SIDE, SIDE), torch.ones(SIDE, SIDE, dtype=torch.int64)]),
    "a view": lambda: torch.ones(SIDE, 3, SIDE).transpose(0, 1).reshape(3, 2, 550, SIDE),
    "on another device": lambda: torch.zeros(SIDE, SIDE, device="meta"),
    "with a gradient": lambda: torch.stack([torch.ones(SIDE, SIDE, requires_grad=True)] * 2),
}


@pytest.fixture
def allocated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the results in large pages."""
    sizes: list[int] = []
    allocate = large_results.allocate
    monkeypatch.setattr(large_results, "allocate", lambda size: (sizes.append(size), allocate(size))[1])
    return sizes


@pytest.mark.parametrize("name", [*CALLS, *OTHERS])
def test_results_are_torchs(name: str, allocated: list[int]) -> None:
    call = CALLS.get(name) or OTHERS[name]
    expected = call()
    with LargeResults():
        ours = call()
    assert (type(ours), ours.shape, ours.dtype, ours.stride()) == (
        type(expected), expected.shape, expected.dtype, expected.stride(),
    )  # fmt: skip
    assert (ours.requires_grad, ours._is_view()) == (expected.requires_grad, expected._is_view())
    assert ours.untyped_storage().nbytes() == expected.untyped_storage().nbytes()
    assert ours.is_meta or torch.equal(ours, expected)
    own = ours.numel() * ours.element_size()
    assert allocated.count(own) == (name in CALLS)


def test_errors_are_torchs() -> None:
    def outcomes() -> list[str]:
        calls = (
            lambda: torch.cat([torch.ones(SIDE, SIDE), torch.ones(SIDE, SIDE + 1)]),
            lambda: torch.stack([torch.ones(SIDE, SIDE), torch.ones(SIDE, SIDE + 1)]),
            lambda: _patches(torch.ones(SIDE * SIDE)).reshape(7, -1),
            lambda: torch.zeros("many"),
        )
        found = []
        for call in calls:
            with pytest.raises((RuntimeError, TypeError)) as error:
                call()
            found.append(f"{type(error.value)} {error.value}")
        return found

    expected = outcomes()
    with LargeResults():
        assert outcomes() == expected
