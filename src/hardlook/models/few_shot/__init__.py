"""Few-shot learners on a frozen encoder: one method per file, batched over tasks; `stacking` batches them."""
