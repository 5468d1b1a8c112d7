/* Jacobi rotations of one real matrix of up to eight columns, with one row per vector; see rotations.h.
 *
 * The four pairs of a round are neighbouring columns, which one vector of angles rotates; then all columns move on
 * as the players of a tournament do, and are back after seven rounds. Missing rows and columns are zeros. */

typedef REAL row __attribute__((vector_size(SMALL_MOST * REAL_BYTES)));
typedef BITS row_mask __attribute__((vector_size(SMALL_MOST * REAL_BYTES)));

#define FROM_PARTNER(x) __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6)
#define MOVED_ON(x) __builtin_shufflevector(x, x, 0, 3, 1, 5, 2, 7, 4, 6)
static const int moved_on[SMALL_MOST] = {0, 3, 1, 5, 2, 7, 4, 6};

static row row_of(REAL x)
{
    return (row){x, x, x, x, x, x, x, x};
}

static row row_choose(row_mask m, row x, row y)
{
    return (row)(((row_mask)x & m) | ((row_mask)y & ~m));
}

static row row_root(row x)
{
    enum { ROW = SMALL_MOST * REAL_BYTES };
    union {
        row rows[BYTES > ROW ? BYTES / ROW : 1];
        vec vecs[ROW > BYTES ? ROW / BYTES : 1];
    } u = {.rows = {x}};
    for (int i = 0; i < (ROW > BYTES ? ROW / BYTES : 1); i++)
        u.vecs[i] = root(u.vecs[i]);
    return u.rows[0];
}

static row row_fused(row x, row y, row z)
{
    for (int l = 0; l < SMALL_MOST; l++)
        z[l] = FUSED(x[l], y[l], z[l]);
    return z;
}

static int any_of_row(row_mask m)
{
    BITS any = 0;
    for (int l = 0; l < SMALL_MOST; l++)
        any |= m[l];
    return any != 0;
}

/* A power of 2 close to the sum of absolute values. */
static row row_power(row x, row y, row z)
{
    const row_mask sign = (row_mask)row_of((REAL)-0.0);
    const row sum = (row)((row_mask)x & ~sign) + (row)((row_mask)y & ~sign) + (row)((row_mask)z & ~sign);
    const row least = row_of(LEAST_NORMAL);
    return (row)((row_mask)row_choose(sum > least, sum, least) & EXPONENT);
}

/* What column p takes of its partner is -s, and what column q takes is s: both as what to add. */
static void angles(row x, row y, row z, row *c, row *s, row *change)
{
    const row none = row_of(0), one = row_of(1), half = row_of((REAL)0.5);
    const row_mask sign = (row_mask)row_of((REAL)-0.0);
    const row power = row_power(x, y, z), inverse = (row)(TWICE_BIAS - (row_mask)power);
    z *= inverse;
    const row apart = (y * inverse - x * inverse) * half, near = (row)((row_mask)apart & ~sign);
    const row squares = apart * apart + z * z, length = row_root(squares);
    const row_mask still = ~(squares > row_of(LEAST_NORMAL / EPSILON));
    const row first = __builtin_shufflevector(apart, apart, 0, 0, 2, 2, 4, 4, 6, 6); /* partners agree on the sign */
    const row direction = (row)((row_mask)one | ((row_mask)first & sign));
    const row ratio = direction / row_choose(still, one, near + length);
    *c = row_root(near / row_choose(still, one, length) * half + half);
    *c = row_choose(still, one, *c);
    *s = row_choose(still, none, z * ratio * *c * (row){-1, 1, -1, 1, -1, 1, -1, 1});
    *change = row_choose(still, none, z * z * ratio * power * (row){-1, 1, -1, 1, -1, 1, -1, 1});
}

/* Two-sided rotations of a symmetric matrix in rows of eight: values on its diagonal, products of rotations in v. */
SHARED int diagonalise_one(row *a, row *v, int vectors)
{
    const REAL tolerance = EPSILON * EPSILON / 64, least = LEAST_NORMAL / EPSILON;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        row_mask active = {0};
        for (int round = 0; round < SMALL_MOST - 1; round++) {
            row on = a[0], off = a[1], c, s, change;
            for (int j = 1; j < SMALL_MOST; j++) {
                row_mask here = {0};
                here[j] = -1;
                on = row_choose(here, a[j], on);
                off = row_choose(here, a[j ^ 1], off);
            }
            off = __builtin_shufflevector(off, off, 0, 0, 2, 2, 4, 4, 6, 6); /* the triangles differ by rounding errors */
            const row product = on * FROM_PARTNER(on);
            const row limit = (row)((row_mask)product & ~(row_mask)row_of((REAL)-0.0)) * tolerance;
            const row square_ = off * off;
            active |= (square_ > limit) & (square_ > row_of(least));
            angles(on, FROM_PARTNER(on), off, &c, &s, &change);
            row turned[SMALL_MOST];
            for (int j = 0; j < SMALL_MOST; j++)
                turned[j] = row_fused(s, FROM_PARTNER(a[j]), c * a[j]);
            const row values = on + change;
            for (int j = 0; j < SMALL_MOST; j++) {
                const int from = moved_on[j];
                row_mask here = {0}, partner = {0};
                here[from] = -1;
                partner[from ^ 1] = -1;
                row x = row_fused(row_of(s[from]), turned[from ^ 1], row_of(c[from]) * turned[from]);
                x = row_choose(here, values, x);
                x = row_choose(partner, row_of(0), x);
                a[j] = MOVED_ON(x);
            }
            for (int j = 0; vectors && j < SMALL_MOST; j++)
                v[j] = MOVED_ON(row_fused(s, FROM_PARTNER(v[j]), c * v[j]));
        }
        if (!any_of_row(active))
            return 0;
        for (int i = 1; i < SMALL_MOST; i++) /* rounding errors of the triangles differ, and would not vanish */
            for (int j = 0; j < i; j++)
                a[i][j] = a[j][i] = (a[i][j] + a[j][i]) / 2;
    }
    return 1;
}

/* One-sided rotations that make columns orthogonal. */
SHARED int orthogonalise_one(row *a, row *v, int vectors)
{
    const REAL tolerance = 16 * EPSILON * EPSILON;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        row_mask active = {0};
        for (int round = 0; round < SMALL_MOST - 1; round++) {
            row norms[2] = {{0}, {0}}, dots[2] = {{0}, {0}}, c, s, change;
            for (int j = 0; j < SMALL_MOST; j++) {
                norms[j & 1] = row_fused(a[j], a[j], norms[j & 1]);
                dots[j & 1] = row_fused(a[j], FROM_PARTNER(a[j]), dots[j & 1]);
            }
            const row x = norms[0] + norms[1], y = FROM_PARTNER(x), z = dots[0] + dots[1];
            const row inverse = (row)(TWICE_BIAS - (row_mask)row_power(x, y, x));
            active |= (z * inverse) * (z * inverse) > (x * inverse) * (y * inverse) * tolerance;
            angles(x, y, z, &c, &s, &change);
            for (int j = 0; j < SMALL_MOST; j++)
                a[j] = MOVED_ON(row_fused(s, FROM_PARTNER(a[j]), c * a[j]));
            for (int j = 0; vectors && j < SMALL_MOST; j++)
                v[j] = MOVED_ON(row_fused(s, FROM_PARTNER(v[j]), c * v[j]));
        }
        if (!any_of_row(active))
            return 0;
    }
    return 1;
}

/* The same as the functions for lanes, in one lane: from there to rows, and back. */
static int one_by_one(elem *a, const int m, const int n, elem *v, int64_t left, int symmetric)
{
    int failed = 0;
    for (int l = 0; l < left; l++) {
        row in_rows[SMALL_MOST], products[SMALL_MOST];
        for (int i = 0; i < SMALL_MOST; i++)
            for (int j = 0; j < SMALL_MOST; j++) {
                in_rows[i][j] = i < m && j < n ? a[i * n + j].re[l] : 0;
                products[i][j] = i == j;
            }
        failed |= symmetric ? diagonalise_one(in_rows, products, v != NULL)
                            : orthogonalise_one(in_rows, products, v != NULL);
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++)
                a[i * n + j].re[l] = in_rows[i][j];
        for (int i = 0; i < n && v != NULL; i++)
            for (int j = 0; j < n; j++)
                v[i * n + j].re[l] = products[i][j];
    }
    return failed;
}

#undef row
#undef row_mask
#undef FROM_PARTNER
#undef MOVED_ON
