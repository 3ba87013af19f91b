"""The filter language: parsing, evaluation in Python, compilation to SQL, aggregates, cursors."""
