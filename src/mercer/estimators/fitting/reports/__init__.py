"""What fitted machines tell of themselves: coefficients, margins, free and bounded samples, pictures."""
