/* Triangular factors and solutions of equations, for one dtype; see lanes.h. */

/* Exchange rows k and i, starting at column `first`, in the lanes of a mask. */
HELPER void exchange(elem *a, int columns, int first, int k, int i, mask where)
{
    for (int j = first; j < columns; j++) {
        const elem upper = a[k * columns + j], lower = a[i * columns + j];
        a[k * columns + j] = either(where, lower, upper);
        a[i * columns + j] = either(where, upper, lower);
    }
}

/* The lanes in which each row below the diagonal has the first of the largest elements of column c, by which LAPACK
 * chooses pivots. */
HELPER void choose_pivot(const elem *a, const int m, const int n, int c, mask *chosen)
{
    vec best = size_of(a[c * n + c]);
    for (int i = c + 1; i < m; i++) {
        const vec here = size_of(a[i * n + c]);
        chosen[i] = here > best;
        best = choose(chosen[i], here, best);
        for (int h = c + 1; h < i; h++)
            chosen[h] &= ~chosen[i];
    }
}

/* Factors L U with row exchanges, in place, applied also to the `k` columns of b, which remain to be solved with U.
 * Returns the lanes with an odd number of exchanges; `zero` receives those with a zero pivot. */
HELPER mask eliminate(elem *a, const int n, elem *b, const int k, mask *zero)
{
    mask odd = {0};
    *zero = (mask){0};
    for (int c = 0; c < n; c++) {
        mask chosen[SMALL_MOST], none = {0};
        choose_pivot(a, n, n, c, chosen);
        for (int i = c + 1; i < n; i++) {
            none |= chosen[i];
            exchange(a, n, c, c, i, chosen[i]);
            exchange(b, k, 0, c, i, chosen[i]);
        }
        odd ^= none;
        const mask nothing = is_zero(a[c * n + c]);
        *zero |= nothing;
        const elem pivot = either(nothing, number(1), a[c * n + c]);
        for (int i = c + 1; i < n; i++) {
            const elem factor = quotient(a[i * n + c], pivot);
            for (int j = c + 1; j < n; j++)
                a[i * n + j] = subtracted(a[i * n + j], factor, a[c * n + j]);
            for (int j = 0; j < k; j++)
                b[i * k + j] = subtracted(b[i * k + j], factor, b[c * k + j]);
        }
    }
    return odd;
}

/* Solve with a triangle in place; if `above`, from the last row. */
HELPER void substitute(const elem *a, const int n, elem *b, const int k, int above, int unit)
{
    for (int s = 0; s < n; s++) {
        const int i = above ? n - 1 - s : s;
        for (int j = 0; j < k; j++) {
            elem x = b[i * k + j];
            for (int h = above ? i + 1 : 0; h < (above ? n : i); h++)
                x = subtracted(x, a[i * n + h], b[h * k + j]);
            b[i * k + j] = unit ? x : quotient(x, a[i * n + i]);
        }
    }
}

/* The lanes in which one of n numbers is not finite. */
HELPER mask infinite(const elem *x, const int n)
{
    mask bad = {0};
    for (int k = 0; k < n; k++) {
        bad |= unbounded(x[k].re);
        IMAGINARY(bad |= unbounded(x[k].im);)
    }
    return bad;
}

/* Factors of an m x n matrix packed in one, the row exchanges, and the order of the rows that results. */
HELPER int factor(const REAL *x, REAL *packed, int64_t *exchanges, int64_t *order, int64_t left, const int m,
                         const int n)
{
    const int k = m < n ? m : n, lanes = left < LANES ? (int)left : LANES;
    elem a[SQUARE(n)];
    GATHER(a, x, left, m * n);
    const mask bad = infinite(a, m * n);
    for (int l = 0; l < lanes; l++)
        for (int i = 0; i < m; i++)
            order[l * m + i] = i;
    for (int c = 0; c < k; c++) {
        mask chosen[SMALL_MOST];
        choose_pivot(a, m, n, c, chosen);
        for (int i = c + 1; i < m; i++)
            exchange(a, n, 0, c, i, chosen[i]);
        for (int l = 0; l < lanes; l++) {
            int64_t pivot = c, *rows = order + l * m;
            for (int i = c + 1; i < m; i++)
                pivot = chosen[i][l] ? i : pivot;
            exchanges[l * k + c] = pivot;
            const int64_t row = rows[c];
            rows[c] = rows[pivot];
            rows[pivot] = row;
        }
        const elem pivot = either(is_zero(a[c * n + c]), number(1), a[c * n + c]);
        for (int i = c + 1; i < m; i++) {
            const elem factor = a[i * n + c] = quotient(a[i * n + c], pivot);
            for (int j = c + 1; j < n; j++)
                a[i * n + j] = subtracted(a[i * n + j], factor, a[c * n + j]);
        }
    }
    scatter(packed, a, left, m * n);
    return any_lane(bad);
}

/* The adjoint of a square matrix, in place. */
HELPER void adjoin(elem *a, const int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            const elem x = conjugate(a[i * n + j]);
            a[i * n + j] = conjugate(a[j * n + i]);
            a[j * n + i] = x;
        }
}

HELPER int solve(const REAL *x, const REAL *right, REAL *out, int64_t left, const int n, const int k, int flags)
{
    elem a[SQUARE(n)], b[SQUARE(n)];
    mask zero;
    GATHER(a, x, left, n * n);
    GATHER(b, right, left, n * k);
    const mask bad = infinite(a, n * n);
    if (flags & SMALL_ADJOINT)
        adjoin(a, n);
    eliminate(a, n, b, k, &zero);
    substitute(a, n, b, k, 1, 0);
    scatter(out, b, left, n * k);
    return any_lane(bad | zero);
}

HELPER int inv(const REAL *x, REAL *out, int64_t left, const int n)
{
    elem a[SQUARE(n)], b[SQUARE(n)];
    mask zero;
    GATHER(a, x, left, n * n);
    for (int i = 0; i < n * n; i++)
        b[i] = number(i / n == i % n);
    const mask bad = infinite(a, n * n);
    eliminate(a, n, b, n, &zero);
    substitute(a, n, b, n, 1, 0);
    scatter(out, b, left, n * n);
    return any_lane(bad | zero);
}

/* The product of the diagonal, with the sign of the exchanges. */
HELPER elem diagonal_product(const elem *a, const int n, mask odd)
{
    elem product = either(odd, number(-1), number(1));
    for (int i = 0; i < n; i++)
        product = times(product, a[i * n + i]);
    return product;
}

HELPER int det(const REAL *x, REAL *out, int64_t left, const int n)
{
    elem a[SQUARE(n)];
    mask zero;
    GATHER(a, x, left, n * n);
    const mask bad = infinite(a, n * n);
    const mask odd = eliminate(a, n, NULL, 0, &zero);
    const elem product = diagonal_product(a, n, odd);
    scatter(out, &product, left, 1);
    return any_lane(bad);
}

/* If a product would overflow, or has lost digits, slower code adds logarithms. */
HELPER int slogdet(const REAL *x, REAL *sign, REAL *logarithm, int64_t left, const int n)
{
    elem a[SQUARE(n)];
    mask zero;
    GATHER(a, x, left, n * n);
    const mask unusable = infinite(a, n * n);
    const mask odd = eliminate(a, n, NULL, 0, &zero);
    mask bad = {0};
    vec magnitude = splat(1), partial;
    elem phase = either(odd, number(-1), number(1));
    for (int i = 0; i < n; i++) {
#if PARTS == 2
        const vec power = power_below(size_of(a[i * n + i]));
        const elem near = scaled(a[i * n + i], inverse_power(power));
        const vec length = root(square(square(splat(0), (elem){near.re, splat(0)}), (elem){near.im, splat(0)}));
        phase = times(phase, scaled(near, splat(1) / choose(zero, splat(1), length)));
        partial = length * power;
#else
        phase.re = with_sign(phase.re, (vec)((mask)phase.re ^ (mask)a[i * n + i].re));
        partial = absolute(a[i * n + i].re);
#endif
        magnitude *= partial;
        bad |= ~zero & ~((magnitude >= splat(LEAST_NORMAL)) & (magnitude <= splat(GREATEST)));
    }
    const int lanes = left < LANES ? (int)left : LANES;
    phase = either(zero, number(0), phase);
    scatter(sign, &phase, left, 1);
    for (int l = 0; l < lanes; l++)
        logarithm[l] = zero[l] ? (REAL)-__builtin_inf() : LOGARITHM(magnitude[l]);
    return any_lane(bad | unusable);
}

HELPER int cholesky(const REAL *x, REAL *out, int64_t left, const int n)
{
    elem given[SQUARE(n)], a[SQUARE(n)];
    GATHER(given, x, left, n * n);
    mask bad = infinite(given, n * n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            a[i * n + j] = j > i ? number(0)
                                 : plus(scaled(given[i * n + j], splat((REAL)0.5)),
                                        conjugate(scaled(given[j * n + i], splat((REAL)0.5))));
    for (int j = 0; j < n; j++) {
        vec pivot = a[j * n + j].re;
        for (int k = 0; k < j; k++)
            pivot -= square(splat(0), a[j * n + k]);
        bad |= ~(pivot > splat(0));
        const vec length = root(pivot), inverse = splat(1) / length;
        a[j * n + j] = real_part(length);
        for (int i = j + 1; i < n; i++) {
            for (int k = 0; k < j; k++)
                a[i * n + j] = subtracted(a[i * n + j], a[i * n + k], conjugate(a[j * n + k]));
            a[i * n + j] = scaled(a[i * n + j], inverse);
        }
    }
    scatter(out, a, left, n * n);
    return any_lane(bad);
}

HELPER int triangular(const REAL *x, const REAL *right, REAL *out, int64_t left, const int n, const int k,
                             int flags)
{
    elem a[SQUARE(n)], b[SQUARE(n)];
    mask zero = {0};
    int above = !(flags & SMALL_LOWER);
    GATHER(a, x, left, n * n);
    GATHER(b, right, left, n * k);
    if (flags & SMALL_ADJOINT) {
        adjoin(a, n);
        above = !above;
    }
    for (int i = 0; i < n && !(flags & SMALL_UNIT); i++)
        zero |= is_zero(a[i * n + i]);
    substitute(a, n, b, k, above, flags & SMALL_UNIT);
    scatter(out, b, left, n * k);
    return any_lane(zero);
}
