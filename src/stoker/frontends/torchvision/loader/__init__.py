# SPDX-License-Identifier: Apache-2.0
"""The DataLoader's side: workers send recipes, threads of the main process materialize the batches."""
