# SPDX-License-Identifier: Apache-2.0
"""Implementation of ``stoker demo``: real photographs in, training batches and a contact sheet out.

`photos` finds freely licensed photographs, `dataset` creates a data set from them, `chain` holds the pipelines,
`checks` proves the promises, `sheet` draws, `run` orders the steps.
"""
