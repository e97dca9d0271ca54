"""What is made of finished runs: scores, reports, figures, tables, documents."""
