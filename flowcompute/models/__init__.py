"""Language models: what a GGUF file holds as graphs over streams of tokens, and texts that they write."""

from flowcompute.models.conversations import Conversation, Conversations
from flowcompute.models.generation import TextGeneration
from flowcompute.models.model import Model, load
from flowcompute.models.thawed_answers import go_on, go_on_together
from flowcompute.tokens import texts

__all__ = ["Conversation", "Conversations", "Model", "TextGeneration", "go_on", "go_on_together", "load", "texts"]
