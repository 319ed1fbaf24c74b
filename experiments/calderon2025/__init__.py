"""Calderon, Reichart and Dror (2025), "The Alternative Annotator Test for LLM-as-a-Judge", ACL."""
