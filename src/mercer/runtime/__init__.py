"""What every room stands on: names on demand, optional packages, threads, long calls, progress, versions."""
