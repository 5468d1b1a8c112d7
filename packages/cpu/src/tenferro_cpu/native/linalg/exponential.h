/* The exponential of matrices and the first term of its derivative, for one dtype; see lanes.h.
 *
 * Scaling and squaring with one Padé approximant, of degree 13 or, in single precision, 7. Limits of norms and the
 * number of squarings are those of tenferro_linalg.functions._exponential, where their sources are named. Each lane
 * has its own number of squarings, so that no matrix changes the result of another. */

#if REAL_BYTES == 4
#define DEGREE 7
#define LIMIT 3.925724783138660
#define SLOPE_LIMIT 3.3
#define NEXT_TERM 0x1.00e4b2189adb9p-52 /* (7!)^2 / (14! 15!) */
#else
#define DEGREE 13
#define LIMIT 4.25
#define SLOPE_LIMIT 4.0
#define NEXT_TERM 0x1.7795c47994e9ap-117 /* (13!)^2 / (26! 27!) */
#endif


enum { SQUARINGS_MOST = 30 };

/* Matrices, and their derivatives in one direction. */
typedef struct {
    elem value[SQUARE(0)], slope[SQUARE(0)];
} dual;

/* Coefficients of the Padé approximant, that of degree 0 first. */
static const REAL pade[] = {
#if REAL_BYTES == 4
    17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1,
#else
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
    670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
#endif
};

/* The call with N for n, a compile-time constant if it is three or four. */
#define BY_SIZE(n, call)                                                                                \
    switch (n) {                                                                                        \
    case 3: {                                                                                           \
        enum { N = 3 };                                                                                 \
        call;                                                                                           \
        break;                                                                                          \
    }                                                                                                   \
    case 4: {                                                                                           \
        enum { N = 4 };                                                                                 \
        call;                                                                                           \
        break;                                                                                          \
    }                                                                                                   \
    default: {                                                                                          \
        const int N = n;                                                                                \
        call;                                                                                           \
    }                                                                                                   \
    }

/* to = x y, or to + x y if `more`. */
INLINE void multiply(const elem *x, const elem *y, elem *restrict to, const int n, int more)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            elem sum = more ? to[i * n + j] : number(0);
            for (int k = 0; k < n; k++)
                sum = added(sum, x[i * n + k], y[k * n + j]);
            to[i * n + j] = sum;
        }
}

HELPER void matmul(const elem *x, const elem *y, elem *restrict to, const int n, int more)
{
    BY_SIZE(n, multiply(x, y, to, N, more))
}

/* to = x y, and its derivative unless `plain`. */
HELPER void dual_product(const dual *x, const dual *y, dual *to, const int n, int plain)
{
    matmul(x->value, y->value, to->value, n, 0);
    if (!plain) {
        matmul(x->value, y->slope, to->slope, n, 0);
        matmul(x->slope, y->value, to->slope, n, 1);
    }
}

/* to += a x + b y + c z */
HELPER void combine(elem *restrict to, const elem *x, const elem *y, const elem *z, REAL a, REAL b, REAL c, const int n)
{
    for (int k = 0; k < n; k++) {
        const elem sum = plus(plus(scaled(x[k], splat(a)), scaled(y[k], splat(b))), scaled(z[k], splat(c)));
        to[k] = plus(to[k], sum);
    }
}

/* Sums of moduli by column, and the largest of them. */
HELPER vec one_norm(const elem *x, const int n)
{
    vec largest = splat(0);
    for (int j = 0; j < n; j++) {
        vec sum = splat(0);
        for (int i = 0; i < n; i++)
            sum += size_of(x[i * n + j]);
        largest = larger_of(sum, largest);
    }
    return largest;
}

/* The first term of the backward error of matrices scaled by `scale`, relative to their norms, without its factor. */
HELPER vec next_power_of(const elem *x, vec scale, const int n)
{
    vec row[SMALL_MOST], following[SMALL_MOST], top = splat(0);
    for (int i = 0; i < n; i++)
        row[i] = splat(1);
    for (int power = 0; power < 2 * DEGREE + 1; power++) {
        for (int j = 0; j < n; j++) {
            following[j] = splat(0);
            for (int i = 0; i < n; i++)
                following[j] = fused(row[i], size_of(x[i * n + j]) * scale, following[j]);
        }
        for (int j = 0; j < n; j++)
            row[j] = following[j];
    }
    for (int j = 0; j < n; j++)
        top = larger_of(row[j], top);
    return top / (one_norm(x, n) * scale);
}

static FLAT vec next_power(const elem *x, vec scale, const int n)
{
    BY_SIZE(n, return next_power_of(x, scale, N))
}

/* 2^-k in each lane. */
SHARED vec power_of_half(const int *k)
{
    vec x;
    for (int l = 0; l < LANES; l++)
        x[l] = (REAL)ldexp(1, -k[l]);
    return x;
}

/* Multiply an odd or even power of matrices and its derivative by a power of 2. */
HELPER void rescale(dual *x, vec by, const int n, int plain)
{
    for (int k = 0; k < n * n; k++) {
        x->value[k] = scaled(x->value[k], by);
        if (!plain)
            x->slope[k] = scaled(x->slope[k], by);
    }
}

/* Squarings of each lane for matrices of these norms, and the largest number of them. */
SHARED int squarings_for(const vec *norm, double limit, int *squarings)
{
    int most = 0;
    for (int l = 0; l < LANES; l++) {
        const double ratio = (double)(*norm)[l] / limit;
        squarings[l] = ratio > 1 ? (int)fmin(ceil(log2(ratio)), SQUARINGS_MOST + 1) : 0;
        most = squarings[l] > most ? squarings[l] : most;
    }
    return most;
}

/* How many squarings the norms of the fourth and the sixth power suggest, if these are fewer, and the power of 2 that
 * undoes the difference. */
SHARED vec fewer_for(const vec *fourth, const vec *sixth, double limit, const int *squarings, int *fewer)
{
    int saved[LANES];
    for (int l = 0; l < LANES; l++) {
        const double growth = fmax(pow((double)(*fourth)[l], 0.25), pow((double)(*sixth)[l], 1.0 / 6));
        const double change = ceil(log2(fmax(growth, 1e-300) / limit));
        fewer[l] = change < 0 ? (int)fmax(squarings[l] + change, 0) : squarings[l];
        saved[l] = fewer[l] - squarings[l];
    }
    return power_of_half(saved);
}

/* Take the smaller numbers, increased where the next term of the error is large. */
SHARED void take_fewer(const vec *next, const int *fewer, int *squarings)
{
    for (int l = 0; l < LANES; l++) {
        const double error = NEXT_TERM * 2 / EPSILON * (double)(*next)[l];
        const double added_again = error > 1 ? ceil(log2(error) / (2 * DEGREE)) : 0;
        const double sum = fewer[l] + added_again;
        squarings[l] = sum < squarings[l] ? (int)sum : squarings[l];
    }
}

/* Fewer squarings where the norms of powers grow more slowly than powers of the norm. */
HELPER void spare(const elem *x, const elem *x4, const elem *x6, double limit, int *squarings, const int n)
{
    int fewer[LANES];
    const vec fourth = one_norm(x4, n), sixth = one_norm(x6, n);
    const vec scale = fewer_for(&fourth, &sixth, limit, squarings, fewer), next = next_power(x, scale, n);
    take_fewer(&next, fewer, squarings);
}

/* Replace b by the solution of a x = b, and a by its factors; zero pivots are reported. */
HELPER mask solve_for(elem *a, const int n, elem *b, const int k)
{
    mask zero;
    eliminate(a, n, b, k, &zero);
    substitute(a, n, b, k, 1, 0);
    return zero;
}

static FLAT mask solve_by_size(elem *a, const int n, elem *b, const int k)
{
    BY_SIZE(n, return solve_for(a, N, b, k))
}

/* The approximant: D^-1 N of the sums D and N of its even and odd terms; zero pivots are reported. */
HELPER mask approximate(const dual *x, const dual *x2, const dual *x4, const dual *x6, dual *to, const int n,
                               int plain)
{
    const REAL *b = pade;
    dual sum, odd, even;
    elem right[3 * SQUARE(0)], *down = odd.value;
    for (int part = 0; part < 2; part++) {
        dual *half = part ? &odd : &even;
#if DEGREE == 13
        for (int k = 0; k < n * n; k++)
            sum.value[k] = sum.slope[k] = number(0);
        combine(sum.value, x6->value, x4->value, x2->value, b[12 + part], b[10 + part], b[8 + part], n * n);
        if (!plain)
            combine(sum.slope, x6->slope, x4->slope, x2->slope, b[12 + part], b[10 + part], b[8 + part], n * n);
        dual_product(x6, &sum, half, n, plain);
#else
        for (int k = 0; k < n * n; k++)
            half->value[k] = half->slope[k] = number(0);
#endif
        combine(half->value, x6->value, x4->value, x2->value, b[6 + part], b[4 + part], b[2 + part], n * n);
        if (!plain)
            combine(half->slope, x6->slope, x4->slope, x2->slope, b[6 + part], b[4 + part], b[2 + part], n * n);
        for (int i = 0; i < n; i++)
            half->value[i * n + i] = plus(half->value[i * n + i], number(b[part]));
    }
    dual_product(x, &odd, &sum, n, plain);
    const int k = plain ? n : 3 * n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const int at = i * n + j;
            right[i * k + j] = plus(even.value[at], sum.value[at]);
            down[at] = minus(even.value[at], sum.value[at]);
            if (!plain) {
                right[i * k + n + j] = plus(even.slope[at], sum.slope[at]);
                right[i * k + 2 * n + j] = minus(sum.slope[at], even.slope[at]);
            }
        }
    const mask zero = n == 2 ? solve_for(down, n, right, k) : solve_by_size(down, n, right, k);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            to->value[i * n + j] = right[i * k + j];
    for (int i = 0; i < n && !plain; i++)
        for (int j = 0; j < n; j++) {
            elem change = right[i * k + n + j];
            for (int h = 0; h < n; h++)
                change = added(change, right[i * k + 2 * n + h], to->value[h * n + j]);
            to->slope[i * n + j] = change;
        }
    return zero;
}

/* The exponential if `direction` is NULL, otherwise its derivative in that direction. */
HELPER int exponential(const REAL *from, const REAL *direction, REAL *out, int64_t left, const int n)
{
    const int plain = direction == NULL;
    const double limit = plain ? LIMIT : SLOPE_LIMIT;
    dual x, x2, x4, x6, y;
    GATHER(x.value, from, left, n * n);
    mask bad = infinite(x.value, n * n);
    if (!plain) {
        GATHER(x.slope, direction, left, n * n);
        bad |= infinite(x.slope, n * n);
    }
    const vec norm = one_norm(x.value, n);
    int squarings[LANES], most = squarings_for(&norm, limit, squarings);
    if (any_lane(bad) || most > SQUARINGS_MOST)
        return 1;
    if (most)
        rescale(&x, power_of_half(squarings), n, plain);
    dual_product(&x, &x, &x2, n, plain);
    dual_product(&x2, &x2, &x4, n, plain);
    dual_product(&x4, &x2, &x6, n, plain);
    if (most) {
        int kept[LANES];
        for (int l = 0; l < LANES; l++)
            kept[l] = squarings[l];
        spare(x.value, x4.value, x6.value, limit, squarings, n);
        most = 0;
        for (int l = 0; l < LANES; l++) {
            most = squarings[l] > most ? squarings[l] : most;
            kept[l] = squarings[l] - kept[l];
        }
        const vec by = power_of_half(kept), squared = by * by;
        rescale(&x, by, n, plain);
        rescale(&x2, squared, n, plain);
        rescale(&x4, squared * squared, n, plain);
        rescale(&x6, squared * squared * squared, n, plain);
    }
    bad = approximate(&x, &x2, &x4, &x6, &y, n, plain);
    for (int done = 0; done < most; done++) {
        mask active;
        for (int l = 0; l < LANES; l++)
            active[l] = squarings[l] > done ? -1 : 0;
        dual_product(&y, &y, &x, n, plain);
        for (int k = 0; k < n * n; k++) {
            y.value[k] = either(active, x.value[k], y.value[k]);
            if (!plain)
                y.slope[k] = either(active, x.slope[k], y.slope[k]);
        }
    }
    const elem *result = plain ? y.value : y.slope;
    bad |= infinite(result, n * n);
    scatter(out, result, left, n * n);
    return any_lane(bad);
}
