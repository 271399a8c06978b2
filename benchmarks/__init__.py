# SPDX-License-Identifier: Apache-2.0
"""The measuring bench: Stoker and its peers on one machine, in one run, by turns. ``python -m benchmarks`` runs it.

Start reading at `case` (what is declared), then `worker` (what runs in a contender's process), `harness` (who runs when
and what is made of the numbers) and any file of `cases`.
"""
