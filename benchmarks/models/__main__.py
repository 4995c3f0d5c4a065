"""`python -m benchmarks.models`: a language model beside llama.cpp; see `language.py`."""

from benchmarks.models.language import main

main()
