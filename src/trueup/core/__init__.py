"""The truth of items from votes, outputs of systems and checked items: one model for every plain answer.

Read the modules in this order: `base` (what votes say of each item), `rows` (how systems and classes correct it),
`prior` (how far real sets were off), `posterior` (what checked items change, and the truths that metrics see).
"""
