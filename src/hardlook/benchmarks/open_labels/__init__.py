"""What the open metrics share: how like two labels are, and how that is chosen and shown."""
