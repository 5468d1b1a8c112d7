/* QR factors by Householder reflections, for one dtype, with LAPACK's signs; see lanes.h. */

/* Reflect columns `first` and later of a, of rows k and later: x -> x - tau v (v* x), or with tau conjugated. */
HELPER void reflect(elem *a, const int m, const int n, int first, int k, const elem *v, elem tau)
{
    for (int j = first; j < n; j++) {
        elem sum = a[k * n + j];
        for (int i = k + 1; i < m; i++)
            sum = added(sum, conjugate(v[i]), a[i * n + j]);
        sum = times(tau, sum);
        a[k * n + j] = minus(a[k * n + j], sum);
        for (int i = k + 1; i < m; i++)
            a[i * n + j] = minus(a[i * n + j], times(v[i], sum));
    }
}

/* Replace the entries of column k below its diagonal by those of a reflection, whose first one is 1; returns its scale.
 * Zeros stay unchanged, including their signs. */
HELPER elem reflection(elem *a, const int m, const int n, int k)
{
    vec below = splat(0);
    for (int i = k + 1; i < m; i++)
        below = square(below, a[i * n + k]);
    const elem head = a[k * n + k];
    mask still = below == splat(0);
    IMAGINARY(still &= head.im == splat(0);)
    const vec length = root(square(below, head)), beta = with_sign(length, -head.re);
    const vec safe = choose(still, splat(1), beta);
    elem tau = head, difference = head;
    tau.re = (beta - head.re) / safe;
    difference.re = choose(still, splat(1), head.re - beta);
    IMAGINARY(tau.im = -head.im / safe;)
    const elem inverse = quotient(number(1), difference);
    for (int i = k + 1; i < m; i++)
        a[i * n + k] = times(a[i * n + k], inverse);
    a[k * n + k] = either(still, head, real_part(beta));
    return either(still, number(0), tau);
}

/* Columns are scaled by powers of 2, so that no square overflows or underflows. */
HELPER int qr(const REAL *x, REAL *out_q, REAL *out_r, int64_t left, const int m, const int n, int vectors)
{
    const int k = m < n ? m : n;
    elem a[SQUARE(n)], r[SQUARE(n)], q[SQUARE(n)], scales[SMALL_MOST];
    vec powers[SMALL_MOST];
    mask bad = {0};
    GATHER(a, x, left, m * n);
    for (int j = 0; j < n; j++) {
        vec largest = splat(0);
        for (int i = 0; i < m; i++) {
            bad |= unbounded(a[i * n + j].re);
            IMAGINARY(bad |= unbounded(a[i * n + j].im);)
            largest = larger_of(size_of(a[i * n + j]), largest);
        }
        powers[j] = power_below(largest);
        const vec inverse = inverse_power(powers[j]);
        for (int i = 0; i < m; i++)
            a[i * n + j] = scaled(a[i * n + j], inverse);
    }
    for (int j = 0; j < k; j++) {
        elem v[SMALL_MOST];
        scales[j] = reflection(a, m, n, j);
        for (int i = j + 1; i < m; i++)
            v[i] = a[i * n + j];
        reflect(a, m, n, j + 1, j, v, conjugate(scales[j]));
    }
    for (int i = 0; i < k; i++)
        for (int j = 0; j < n; j++)
            r[i * n + j] = j < i ? number(0) : scaled(a[i * n + j], powers[j]);
    scatter(out_r, r, left, k * n);
    if (!vectors)
        return any_lane(bad);
    for (int i = 0; i < m * k; i++)
        q[i] = number(i / k == i % k);
    for (int j = k - 1; j >= 0; j--) {
        elem v[SMALL_MOST];
        for (int i = j + 1; i < m; i++)
            v[i] = a[i * n + j];
        reflect(q, m, k, j, j, v, scales[j]);
    }
    scatter(out_q, q, left, m * k);
    return any_lane(bad);
}
