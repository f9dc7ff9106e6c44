"""Stochastic subgradient descent for the soft margin, linear and with kernels.

Shalev-Shwartz, "SGD for solving Soft-SVM" and "with Kernels":

    minimise  F(w) = (λ/2)‖w‖² + Σ p_i max(0, 1 − y_i⟨w, φ(x_i)⟩),    p_i = weight_i / Σ weights

    1  θ = 0                             in the kernel form θ = Σ β_jφ(x_j): the coefficients β = 0
    2  for t = 1, …, T
    3      w = θ / (λt)
    4      choose i with probability p_i
    5      if y_i⟨w, φ(x_i)⟩ < 1
    6          θ ← θ + y_iφ(x_i)         in the kernel form β_i ← β_i + y_i
    7  output: the mean of the w of line 3

Lines 2 to 6 are in src/core/solve/pegasos.cpp, the choice of line 4 and the mean of line 7 in iterates.py, and the
sample spaces with the loop over epochs in descent.py. Line 3 is a subgradient step of length 1/(λ(t + 1)), so after T
steps the mean w̄ has E F(w̄) − min F ≤ 2R²(1 + ln T)/(λT), where R bounds ‖φ(x_i)‖.
"""
