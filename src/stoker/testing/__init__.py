# SPDX-License-Identifier: Apache-2.0
"""What Stoker's own tests are made of, for users to check their operators.

    from stoker.testing import check_operator
    check_operator(MyOp)

Laws (:mod:`.laws`) hold an operator or a graph to its reference however it runs; :mod:`.tolerances` compares results;
:mod:`.strategies` makes images, batches and graphs for Hypothesis.
"""

from .laws import check_graph as check_graph
from .laws import check_operator as check_operator
from .tolerances import assert_close as assert_close
from .tolerances import assert_exact as assert_exact
from .tolerances import assert_rows as assert_rows
