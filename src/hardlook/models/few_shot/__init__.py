"""Few-shot learners on a frozen encoder: one method, one file, batched over tasks; `stacking` batches them."""
