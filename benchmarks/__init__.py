# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: Stoker and its peers on one machine, in alternation. ``python -m benchmarks`` runs them.

Start reading at `case` (declarations), then `worker` (the process of a contender), `harness` (order of the rounds and
statistics) and any file of `cases`.
"""
