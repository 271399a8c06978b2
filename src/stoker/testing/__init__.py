# SPDX-License-Identifier: Apache-2.0
"""Test tools for operators, the same that Stoker's own tests use.

    from stoker.testing import check_operator
    check_operator(MyOp)

Laws (:mod:`.laws`) compare an operator or a graph with its reference in every way of running it. :mod:`.tolerances`
compares results. :mod:`.strategies` generates images, batches and graphs for Hypothesis.
"""

from .laws import check_graph as check_graph
from .laws import check_on_gpu as check_on_gpu
from .laws import check_operator as check_operator
from .tolerances import assert_close as assert_close
from .tolerances import assert_exact as assert_exact
from .tolerances import assert_rows as assert_rows
