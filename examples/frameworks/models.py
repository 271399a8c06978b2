# SPDX-License-Identifier: Apache-2.0
"""One small network in NumPy, PyTorch, JAX (Flax), TensorFlow (Keras) and Paddle: the same layers and first weights.

A model's ``step(images, labels)`` takes a batch of its framework, changes the weights once by gradient descent, in all
frameworks in the same way, and returns the loss.
"""

from __future__ import annotations

from typing import Any

import numpy as np

HIDDEN = 32
LEARNING_RATE = 0.05


def first_weights(features: int, classes: int) -> list[Any]:
    """Return two weights and biases, float32: (features, HIDDEN), (HIDDEN,), (HIDDEN, classes), (classes,)."""
    rng = np.random.default_rng(5)
    first = rng.normal(0, features**-0.5, (features, HIDDEN))
    second = rng.normal(0, HIDDEN**-0.5, (HIDDEN, classes))
    return [x.astype(np.float32) for x in (first, np.zeros(HIDDEN), second, np.zeros(classes))]


class NumpyModel:
    """The network in float64, with gradients by hand."""

    def __init__(self, features: int, classes: int) -> None:
        self.weights = [w.astype(np.float64) for w in first_weights(features, classes)]

    def step(self, images: Any, labels: Any) -> float:
        w1, b1, w2, b2 = self.weights
        x = images.reshape(len(images), -1).astype(np.float64)
        hidden = np.maximum(x @ w1 + b1, 0)
        scores = hidden @ w2 + b2
        scores -= scores.max(axis=1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        rows = np.arange(len(labels))
        loss = -logs[rows, labels].mean()
        error = np.exp(logs)
        error[rows, labels] -= 1
        error /= len(labels)
        back = (error @ w2.T) * (hidden > 0)
        gradients = [x.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]
        self.weights = [w - LEARNING_RATE * g for w, g in zip(self.weights, gradients, strict=True)]
        return float(loss)


class TorchModel:
    """The network in PyTorch."""

    def __init__(self, features: int, classes: int) -> None:
        import torch

        self.torch = torch
        layers = torch.nn.Linear(features, HIDDEN), torch.nn.Linear(HIDDEN, classes)
        w1, b1, w2, b2 = (torch.from_numpy(w) for w in first_weights(features, classes))
        with torch.no_grad():
            for layer, weight, bias in zip(layers, (w1, w2), (b1, b2), strict=True):
                layer.weight.copy_(weight.T)
                layer.bias.copy_(bias)
        self.model = torch.nn.Sequential(torch.nn.Flatten(), layers[0], torch.nn.ReLU(), layers[1])
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE)

    def step(self, images: Any, labels: Any) -> float:
        loss = self.torch.nn.functional.cross_entropy(self.model(images), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


class JaxModel:
    """The network in JAX, compiled, with layers of Flax and an optimizer of Optax."""

    def __init__(self, features: int, classes: int) -> None:
        import flax.linen as nn
        import jax
        import optax

        model = nn.Sequential([nn.Dense(HIDDEN), nn.relu, nn.Dense(classes)])
        optimizer = optax.sgd(LEARNING_RATE)

        def loss_of(variables: Any, images: Any, labels: Any) -> Any:
            scores = model.apply(variables, images.reshape(len(images), -1))
            return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()

        @jax.jit
        def update(variables: Any, state: Any, images: Any, labels: Any) -> Any:
            loss, gradients = jax.value_and_grad(loss_of)(variables, images, labels)
            changes, state = optimizer.update(gradients, state)
            return loss, optax.apply_updates(variables, changes), state

        self.update = update
        variables = model.init(jax.random.key(0), np.zeros((1, features), np.float32))
        weights = iter(first_weights(features, classes))
        for layer in variables["params"].values():
            layer.update(kernel=next(weights), bias=next(weights))
        self.variables, self.state = variables, optimizer.init(variables)

    def step(self, images: Any, labels: Any) -> float:
        loss, self.variables, self.state = self.update(self.variables, self.state, images, labels)
        return float(loss)


class TensorFlowModel:
    """The network in Keras, with a gradient tape."""

    def __init__(self, features: int, classes: int) -> None:
        import tensorflow as tf

        dense = tf.keras.layers.Dense
        self.model = tf.keras.Sequential([dense(HIDDEN, activation="relu"), dense(classes)])
        self.model.build((None, features))
        self.model.set_weights(first_weights(features, classes))
        self.loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.optimizer = tf.keras.optimizers.SGD(LEARNING_RATE)
        self.tape, self.reshape = tf.GradientTape, tf.reshape

    def step(self, images: Any, labels: Any) -> float:
        features = self.reshape(images, [len(images), -1])
        with self.tape() as tape:
            loss = self.loss(labels, self.model(features, training=True))
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return float(loss)


class PaddleModel:
    """The network in Paddle."""

    def __init__(self, features: int, classes: int) -> None:
        import paddle

        nn = paddle.nn
        self.entropy = nn.functional.cross_entropy
        self.model = nn.Sequential(nn.Flatten(), nn.Linear(features, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, classes))
        for parameter, weight in zip(self.model.parameters(), first_weights(features, classes), strict=True):
            parameter.set_value(weight)
        self.optimizer = paddle.optimizer.SGD(LEARNING_RATE, parameters=self.model.parameters())

    def step(self, images: Any, labels: Any) -> float:
        loss = self.entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        self.optimizer.clear_grad()
        return float(loss)


MODELS: dict[str, Any] = {
    "numpy": NumpyModel, "torch": TorchModel, "jax": JaxModel, "tf": TensorFlowModel, "paddle": PaddleModel,
}  # fmt: skip
