/* Eigenvalues of Hermitian matrices and singular values by Jacobi rotations, for one dtype; see lanes.h.
 *
 * Demmel and Veselic, Jacobi's method is more accurate than QR, SIAM J. Matrix Anal. Appl. 13 (1992). Pairs are
 * taken in rounds of a tournament: those of one round have nothing in common, and the processor works on several at
 * once. */

enum { SWEEPS = 30 };

/* Pair `k` of a round among n players, or n + 1 if n is odd; `q` is n for the player without a partner. */
INLINE void partners(const int n, int round, int k, int *p, int *q)
{
    const int even = n + (n & 1), a = k == 0 ? even - 1 : (round + k) % (even - 1);
    const int b = (round + even - 1 - k) % (even - 1);
    *p = a < b ? a : b;
    *q = a < b ? b : a;
}

/* The rotation that makes [[x, z], [conj(z), y]] diagonal: (u, v) becomes (c u - conj(s) v, s u + c v). `change` is
 * what x loses and y wins. Rotations by more than an eighth of a turn are not made. A power of 2 brings the numbers
 * near 1: squares that lost digits would make rotations that are not orthogonal. */
INLINE void rotation(vec x, vec y, elem z, vec *c, elem *s, vec *change)
{
    const vec power = power_below(absolute(x) + absolute(y) + size_of(z)), inverse = inverse_power(power);
    z = scaled(z, inverse);
    const vec half = (y * inverse - x * inverse) * splat((REAL)0.5), near = absolute(half);
    const vec squares = square(half * half, z), long_ = root(squares);
    const mask none = ~(squares > splat(LEAST_NORMAL / EPSILON)); /* square roots of smaller numbers would have few digits */
    const vec ratio = with_sign(splat(1), half) / choose(none, splat(1), near + long_);
    const vec cosine = near / choose(none, splat(1), long_); /* of twice the angle */
    *c = choose(none, splat(1), root(fused(cosine, splat((REAL)0.5), splat((REAL)0.5))));
    *s = either(none, number(0), scaled(z, ratio * *c));
    *change = choose(none, splat(0), square(splat(0), z) * ratio * power);
}

/* Columns p and q of a matrix with rows of n numbers. */
INLINE void rotate(elem *a, const int rows, const int n, int p, int q, vec c, elem s)
{
    for (int i = 0; i < rows; i++) {
        const elem u = a[i * n + p], v = a[i * n + q];
        const elem nu = scaled(u, c), nv = scaled(v, c);
        a[i * n + p] = added(nu, (elem){-s.re IMAGINARY_PART(s.im)}, v);
        a[i * n + q] = added(nv, s, u);
    }
}

/* Update the entries of a Hermitian matrix outside the pair; both triangles are stored. */
INLINE void rotate_both(elem *a, const int n, int p, int q, vec c, elem s)
{
    for (int i = 0; i < n; i++) {
        if (i == p || i == q)
            continue;
        const elem u = a[i * n + p], v = a[i * n + q];
        const elem x = added(scaled(u, c), (elem){-s.re IMAGINARY_PART(s.im)}, v), y = added(scaled(v, c), s, u);
        a[i * n + p] = x;
        a[i * n + q] = y;
        a[p * n + i] = conjugate(x);
        a[q * n + i] = conjugate(y);
    }
}

/* Diagonalise a Hermitian matrix; unless v is NULL, it becomes the product of the rotations. Returns the lanes that did
 * not converge. */
HELPER mask diagonalise(elem *a, const int n, elem *v)
{
    const vec tolerance = splat(EPSILON * EPSILON / 64), least = splat(LEAST_NORMAL / EPSILON);
    const int even = n + (n & 1);
    mask active = {0};
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        active = (mask){0};
        for (int i = 0; i < n; i++)
            for (int j = i + 1; j < n; j++)
                active |= square(splat(0), a[i * n + j]) >
                          larger_of(tolerance * absolute(a[i * n + i].re * a[j * n + j].re), least);
        if (!any_lane(active))
            break;
        for (int round = 0; round < even - 1; round++)
            for (int k = 0; k < even / 2; k++) {
                int p, q;
                vec c, change;
                elem s;
                partners(n, round, k, &p, &q);
                if (q == n)
                    continue;
                rotation(a[p * n + p].re, a[q * n + q].re, a[p * n + q], &c, &s, &change);
                a[p * n + p].re -= change;
                a[q * n + q].re += change;
                a[p * n + q] = a[q * n + p] = number(0);
                rotate_both(a, n, p, q, c, s);
                if (v != NULL)
                    rotate(v, n, n, p, q, c, s);
            }
    }
    return active;
}

/* Sort n values of a lane: ascending if sign is 1, descending if it is -1. */
HELPER void sorted(const vec *values, const int n, int lane, REAL sign, int *order)
{
    for (int i = 0; i < n; i++) {
        const REAL value = sign * values[i][lane];
        int j = i;
        for (; j > 0 && sign * values[order[j - 1]][lane] > value; j--)
            order[j] = order[j - 1];
        order[j] = i;
    }
}

/* Divide by a power of 2 near the largest entry, in place; `bad` receives the lanes with entries that are not
 * finite. */
HELPER vec normalise(elem *a, const int n, mask *bad)
{
    vec largest = splat(0);
    *bad = (mask){0};
    for (int i = 0; i < n; i++) {
        *bad |= unbounded(a[i].re);
        IMAGINARY(*bad |= unbounded(a[i].im);)
        largest = larger_of(absolute(a[i].re), largest);
        IMAGINARY(largest = larger_of(absolute(a[i].im), largest);)
    }
    const vec power = power_below(largest), inverse = inverse_power(power);
    for (int i = 0; i < n; i++)
        a[i] = scaled(a[i], inverse);
    return power;
}

/* Orthogonalise the columns of a matrix with at least as many rows; v becomes the product of the rotations. */
HELPER mask orthogonalise(elem *a, const int m, const int n, elem *v)
{
    const vec tolerance = splat(16 * EPSILON * EPSILON);
    const int even = n + (n & 1);
    mask active = {0};
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        active = (mask){0};
        for (int round = 0; round < even - 1; round++)
            for (int k = 0; k < even / 2; k++) {
                int p, q;
                vec c, change, x = splat(0), y = splat(0);
                elem s, z = number(0);
                partners(n, round, k, &p, &q);
                if (q == n)
                    continue;
                for (int i = 0; i < m; i++) {
                    x = square(x, a[i * n + p]);
                    y = square(y, a[i * n + q]);
                    z = added(z, conjugate(a[i * n + p]), a[i * n + q]);
                }
                const vec inverse = inverse_power(power_below(x + y));
                const mask here = square(splat(0), scaled(z, inverse)) > tolerance * (x * inverse) * (y * inverse);
                if (!any_lane(here))
                    continue;
                active |= here;
                rotation(x, y, z, &c, &s, &change);
                rotate(a, m, n, p, q, c, s);
                if (v != NULL)
                    rotate(v, n, n, p, q, c, s);
            }
        if (!any_lane(active))
            break;
    }
    return active;
}

#if PARTS == 1
#include "linalg/single.h"
#endif

/* Rotate in all lanes, or one matrix after the other if they are large and few. Returns whether it failed to
 * converge. */
HELPER int rotate_all(elem *a, const int m, const int n, elem *v, int64_t left, int symmetric)
{
#if PARTS == 1
    if (n > 4 && left <= 2)
        return one_by_one(a, m, n, v, left, symmetric);
#endif
    return any_lane(symmetric ? diagonalise(a, n, v) : orthogonalise(a, m, n, v));
}

HELPER int eigh(const REAL *x, REAL *out_w, REAL *out_v, int64_t left, const int n)
{
    elem given[SQUARE(n)], a[SQUARE(n)], v[SQUARE(n)];
    vec values[SMALL_MOST];
    mask bad;
    GATHER(given, x, left, n * n);
    const vec power = normalise(given, n * n, &bad);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            a[i * n + j] = scaled(plus(given[i * n + j], conjugate(given[j * n + i])), splat((REAL)0.5));
            v[i * n + j] = number(i == j);
        }
    if (any_lane(bad))
        return 1;
    if (rotate_all(a, n, n, out_v == NULL ? NULL : v, left, 1))
        return 1;
    for (int i = 0; i < n; i++)
        values[i] = a[i * n + i].re * power;
    const int lanes = left < LANES ? (int)left : LANES;
    for (int l = 0; l < lanes; l++) {
        int order[SMALL_MOST];
        sorted(values, n, l, 1, order);
        for (int i = 0; i < n; i++)
            out_w[l * n + i] = values[order[i]][l];
        for (int i = 0; i < n && out_v != NULL; i++)
            for (int j = 0; j < n; j++)
                put(out_v + (l * n * n + i * n + j) * PARTS, &v[i * n + order[j]], l);
    }
    return 0;
}

/* Singular values of m x n matrices; wide ones are replaced by their adjoints, which exchanges left and right
 * vectors. */
HELPER int svd(const REAL *x, REAL *out_u, REAL *out_s, REAL *out_vh, int64_t left, const int m, const int n)
{
    const int wide = m < n, rows = wide ? n : m, k = wide ? m : n;
    elem given[SQUARE(n)], a[SQUARE(n)], v[SQUARE(n)];
    vec values[SMALL_MOST];
    mask bad;
    GATHER(given, x, left, m * n);
    const vec power = normalise(given, m * n, &bad);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < k; j++)
            a[i * k + j] = wide ? conjugate(given[j * n + i]) : given[i * n + j];
    for (int i = 0; i < k * k; i++)
        v[i] = number(i / k == i % k);
    if (any_lane(bad))
        return 1;
    const int vectors = out_u != NULL;
    if (rotate_all(a, rows, k, vectors ? v : NULL, left, 0))
        return 1;
    mask lost = {0};
    for (int j = 0; j < k; j++) {
        vec length = splat(0);
        for (int i = 0; i < rows; i++)
            length = square(length, a[i * k + j]);
        lost |= ~(length > splat(LEAST_NORMAL / EPSILON / EPSILON));
        length = root(length);
        values[j] = length * power;
        const vec inverse = splat(1) / length;
        for (int i = 0; i < rows && vectors; i++)
            a[i * k + j] = scaled(a[i * k + j], inverse);
    }
    if (vectors && any_lane(lost))
        return 1;
    const int lanes = left < LANES ? (int)left : LANES;
    for (int l = 0; l < lanes; l++) {
        int order[SMALL_MOST];
        sorted(values, k, l, -1, order);
        for (int i = 0; i < k; i++)
            out_s[l * k + i] = values[order[i]][l];
        for (int j = 0; j < k && vectors; j++) {
            const elem *narrow = wide ? v : a, *other = wide ? a : v;
            for (int i = 0; i < m; i++)
                put(out_u + ((int64_t)l * m * k + i * k + j) * PARTS, &narrow[i * k + order[j]], l);
            for (int i = 0; i < n; i++) {
                const elem turned = conjugate(other[i * k + order[j]]);
                put(out_vh + ((int64_t)l * k * n + j * n + i) * PARTS, &turned, l);
            }
        }
    }
    return 0;
}
