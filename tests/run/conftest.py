# SPDX-License-Identifier: Apache-2.0
"""Shared fixtures: data sets in containers and their readers."""

from tests.run.containers import reader_case as reader_case
from tests.run.containers import records as records
from tests.run.containers import registered_readers as registered_readers
from tests.run.containers import tars as tars
