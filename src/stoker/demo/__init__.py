# SPDX-License-Identifier: Apache-2.0
"""The demonstration behind ``stoker demo``: real photographs in, training batches and a contact sheet out.

`photos` finds freely licensed photographs, `dataset` makes a data set out of them, `chain` holds the
pipelines, `checks` proves the promises, `sheet` draws, `run` puts the steps in order.
"""
