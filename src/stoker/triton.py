# SPDX-License-Identifier: Apache-2.0
"""``stoker.triton``: pipelines as models of Triton Inference Server."""

from .frameworks._triton import autoserialize as autoserialize
from .frameworks._triton import bind as bind
from .frameworks._triton import export as export
from .frameworks._triton import model as model
