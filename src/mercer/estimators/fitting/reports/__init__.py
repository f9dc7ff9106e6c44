"""Reports on fitted machines: coefficients, margins, free and bounded samples, notebook output."""
