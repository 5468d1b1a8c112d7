// Complex numbers in kernels: the functions of numbers.cuh that have a complex form.

template <class T> struct tf_complex { T re, im; };
typedef tf_complex<float> tf_c8;
typedef tf_complex<double> tf_c16;
#define TZ template <class T> static __device__ __forceinline__
#define Z tf_complex<T>

TZ Z tf_pair(T re, T im) { Z z; z.re = re; z.im = im; return z; }
TZ Z tf_turned(Z z) { return tf_pair(-z.im, z.re); }          // i z
TZ Z tf_turned_back(Z z) { return tf_pair(z.im, -z.re); }     // -i z

// arithmetic

TZ Z tf_add(Z x, Z y) { return tf_pair(x.re + y.re, x.im + y.im); }
TZ Z tf_sub(Z x, Z y) { return tf_pair(x.re - y.re, x.im - y.im); }
TZ Z tf_mul(Z x, Z y) { return tf_pair(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re); }
TZ Z tf_neg(Z x) { return tf_pair(-x.re, -x.im); }
TZ bool tf_is_nan(Z x) { return x.re != x.re || x.im != x.im; }
TZ bool tf_is_inf(Z x) { return tf_is_inf(x.re) || tf_is_inf(x.im); }
TZ bool tf_is_finite(Z x) { return tf_is_finite(x.re) && tf_is_finite(x.im); }
TZ bool tf_eq(Z x, Z y) { return x.re == y.re && x.im == y.im; }
TZ bool tf_ne(Z x, Z y) { return x.re != y.re || x.im != y.im; }
TZ Z tf_select(bool pred, Z x, Z y) { return pred ? x : y; }
TZ Z tf_round(Z x) { return tf_pair(rint(x.re), rint(x.im)); }
TZ T tf_abs(Z x) { return hypot(x.re, x.im); }
TZ Z tf_conj(Z x) { return tf_pair(x.re, -x.im); }
TZ T tf_real(Z x) { return x.re; }
TZ T tf_imag(Z x) { return x.im; }
TZ Z tf_complex_of(T re, T im) { return tf_pair(re, im); }
TZ Z tf_stop_gradient(Z x) { return x; }

TZ Z tf_absorbing_mul(Z x, Z y) {
    return x.re != 0 || x.im != 0 || tf_is_finite(y) ? tf_mul(x, y) : tf_mul(x, tf_pair((T)0, (T)0));
}

// Smith's division: scaled by the larger part of the divisor; a divisor of 0 divides part by part.
TZ Z tf_div(Z x, Z y) {
    if (fabs(y.re) >= fabs(y.im)) {
        if (y.re == 0 && y.im == 0) return tf_pair(x.re / fabs(y.re), x.im / fabs(y.re));
        T ratio = y.im / y.re, scale = (T)1 / (y.re + y.im * ratio);
        return tf_pair((x.re + x.im * ratio) * scale, (x.im - x.re * ratio) * scale);
    }
    T ratio = y.re / y.im, scale = (T)1 / (y.im + y.re * ratio);
    return tf_pair((x.re * ratio + x.im) * scale, (x.im * ratio - x.re) * scale);
}

TZ Z tf_sign(Z x) {
    if (x.re == 0 && x.im == 0) return tf_pair((T)0, (T)0);
    T a = x.re, b = x.im;
    if (tf_is_inf(x)) {  // infinities lie on an axis, or half-way between two
        if (a == a) a = copysign(tf_is_inf(a) ? (T)1 : (T)0, a);
        if (b == b) b = copysign(tf_is_inf(b) ? (T)1 : (T)0, b);
    }
    T size = hypot(a, b);
    if (tf_is_inf(size) || size < (T)7.9e-31) {  // beyond the range, or of a few bits
        T scale = size < 1 ? (T)1152921504606846976.0 : (T)0.25;
        a *= scale;
        b *= scale;
        size = hypot(a, b);
    }
    return tf_pair(a / size, b / size);
}

// functions

// factor exp(x) (cos y + i sin y), the exponential in two steps where it alone would overflow
TZ Z tf_spiral(T factor, T x, T y) {
    T c = factor * cos(y), s = factor * sin(y);
    if (x > (sizeof(T) == 8 ? (T)700 : (T)80)) {
        T half = exp(x * (T)0.5);
        return tf_pair(c * half * half, s * half * half);
    }
    T size = exp(x);
    return tf_pair(c * size, s * size);
}

TZ Z tf_exp(Z x) {
    if (x.im == 0) return tf_pair(exp(x.re), x.im);
    if (!tf_is_finite(x.im)) {
        if (x.re == tf_of<T>::low()) return tf_pair((T)0, copysign((T)0, x.im));
        T nan = x.im - x.im;
        return tf_pair(x.re == tf_of<T>::high() ? x.re : nan, nan);
    }
    return tf_spiral((T)1, x.re, x.im);
}

TZ Z tf_exp2(Z x) {
    const T log2 = (T)0.693147180559945309417;
    return tf_exp(tf_pair(x.re * log2, x.im * log2));
}

TZ Z tf_expm1(Z x) {
    Z whole = tf_exp(x);
    if (!(fabs(x.re) < (T)1)) return tf_pair(whole.re - (T)1, whole.im);
    T half = sin(x.im * (T)0.5);
    return tf_pair(expm1(x.re) * cos(x.im) - (T)2 * half * half, whole.im);
}

// the logarithm of the magnitude, exact near 1
TZ T tf_log_abs(Z x) {
    T a = fabs(x.re), b = fabs(x.im), big = a > b ? a : b, small = a > b ? b : a;
    if (big > (T)0.5 && big < (T)2) return (T)0.5 * log1p((big - 1) * (big + 1) + small * small);
    T size = hypot(x.re, x.im);
    if (size == tf_of<T>::high() && tf_is_finite(x))
        return log(hypot(x.re * (T)0.5, x.im * (T)0.5)) + (T)0.693147180559945309417;
    return log(size);
}

TZ Z tf_log(Z x) { return tf_pair(tf_log_abs(x), atan2(x.im, x.re)); }

TZ Z tf_log1p(Z x) {
    T size = fabs(x.re) + fabs(x.im);
    T re = size < (T)0.5 ? (T)0.5 * log1p(x.re * (x.re + 2) + x.im * x.im) : tf_log_abs(tf_pair(x.re + 1, x.im));
    return tf_pair(re, atan2(x.im, x.re + 1));
}

TZ Z tf_scaled(Z x, T by) { return tf_pair(x.re * by, x.im * by); }
TZ Z tf_log2(Z x) { return tf_scaled(tf_log(x), (T)1.44269504088896340736); }
TZ Z tf_log10(Z x) { return tf_scaled(tf_log(x), (T)0.434294481903251827651); }

TZ Z tf_sqrt(Z x) {
    if (x.re == 0 && x.im == 0) return tf_pair((T)0, x.im);
    if (tf_is_inf(x.im)) return tf_pair(tf_of<T>::high(), x.im);
    if (x.re == tf_of<T>::high()) return tf_pair(x.re, x.im == x.im ? copysign((T)0, x.im) : x.im);
    if (x.re == tf_of<T>::low()) return tf_pair(x.im == x.im ? (T)0 : x.im, copysign(-x.re, x.im));
    const T huge = sizeof(T) == 8 ? (T)1e300 : (T)1e37, tiny = sizeof(T) == 8 ? (T)1e-290 : (T)1e-30;
    T a = fabs(x.re), b = fabs(x.im), before = 1, after = 1;
    if (a > huge || b > huge) { before = (T)0.0625; after = 4; }
    if (a < tiny && b < tiny) { before = (T)281474976710656.0; after = (T)5.9604644775390625e-08; }  // 2^48, 2^-24
    T re = a * before, im = x.im * before;
    T root = sqrt((re + hypot(re, im)) * (T)0.5);
    T other = im / (root * 2);
    root *= after;
    other *= after;
    return x.re >= 0 ? tf_pair(root, other) : tf_pair(fabs(other), copysign(root, x.im));
}

TZ Z tf_rsqrt(Z x) { return tf_div(tf_pair((T)1, (T)0), tf_sqrt(x)); }

TZ Z tf_sinh(Z x) {
    if (x.im == 0) return tf_pair(sinh(x.re), x.im);
    if (fabs(x.re) > (sizeof(T) == 8 ? (T)40 : (T)20)) {
        Z large = tf_spiral((T)0.5, fabs(x.re), x.im);
        return tf_pair(copysign((T)1, x.re) * large.re, large.im);
    }
    return tf_pair(sinh(x.re) * cos(x.im), cosh(x.re) * sin(x.im));
}

TZ Z tf_cosh(Z x) {
    if (x.im == 0) return tf_pair(cosh(x.re), copysign(x.im, x.re) * copysign((T)1, x.im));
    if (fabs(x.re) > (sizeof(T) == 8 ? (T)40 : (T)20)) {
        Z large = tf_spiral((T)0.5, fabs(x.re), x.im);
        return tf_pair(large.re, copysign((T)1, x.re) * large.im);
    }
    return tf_pair(cosh(x.re) * cos(x.im), sinh(x.re) * sin(x.im));
}

// W. Kahan, Branch cuts for complex elementary functions, 1987: these and the inverse functions below
TZ Z tf_tanh(Z x) {
    if (fabs(x.re) > (sizeof(T) == 8 ? (T)20 : (T)9)) {
        T decay = exp(-fabs(x.re));
        T turn = tf_is_finite(x.im) ? sin(x.im) * cos(x.im) : (T)0;
        return tf_pair(copysign((T)1, x.re), (T)4 * turn * decay * decay);
    }
    T t = tan(x.im), s = sinh(x.re), beta = 1 + t * t, rho = sqrt(1 + s * s);
    if (tf_is_inf(t)) return tf_pair(rho / s, 1 / t);
    T below = 1 + beta * s * s;
    return tf_pair(beta * rho * s / below, t / below);
}

TZ Z tf_sin(Z x) { return tf_turned_back(tf_sinh(tf_turned(x))); }
TZ Z tf_cos(Z x) { return tf_cosh(tf_turned(x)); }
TZ Z tf_tan(Z x) { return tf_turned_back(tf_tanh(tf_turned(x))); }

TZ Z tf_asin(Z x) {
    Z a = tf_sqrt(tf_pair(1 - x.re, -x.im)), b = tf_sqrt(tf_pair(1 + x.re, x.im));
    return tf_pair(atan2(x.re, a.re * b.re - a.im * b.im), asinh(a.re * b.im - a.im * b.re));
}

TZ Z tf_acos(Z x) {
    Z a = tf_sqrt(tf_pair(1 - x.re, -x.im)), b = tf_sqrt(tf_pair(1 + x.re, x.im));
    return tf_pair(2 * atan2(a.re, b.re), asinh(b.re * a.im - b.im * a.re));
}

TZ Z tf_acosh(Z x) {
    Z a = tf_sqrt(tf_pair(x.re - 1, x.im)), b = tf_sqrt(tf_pair(x.re + 1, x.im));
    return tf_pair(asinh(a.re * b.re + a.im * b.im), 2 * atan2(a.im, b.re));
}

TZ Z tf_atanh(Z x) {
    const T huge = sizeof(T) == 8 ? (T)1e150 : (T)1e18, quarter_turn = (T)1.57079632679489661923;
    if (fabs(x.re) > huge || fabs(x.im) > huge) {
        T re = tf_is_inf(x) ? copysign((T)0, x.re) : tf_div(tf_pair((T)1, (T)0), x).re;
        return tf_pair(re, copysign(quarter_turn, x.im));
    }
    T a = fabs(x.re), off = 1 - a;
    T re = (T)0.25 * log1p(4 * a / (off * off + x.im * x.im));
    T im = (T)0.5 * atan2(2 * x.im, off * (1 + a) - x.im * x.im);
    return tf_pair(copysign(re, x.re), im);
}

TZ Z tf_asinh(Z x) { return tf_turned_back(tf_asin(tf_turned(x))); }
TZ Z tf_atan(Z x) { return tf_turned_back(tf_atanh(tf_turned(x))); }

TZ Z tf_pow(Z x, Z y) {
    if (y.re == 0 && y.im == 0) return tf_pair((T)1, (T)0);
    if (x.re == 0 && x.im == 0) {
        T nan = tf_of<T>::high() - tf_of<T>::high();
        return y.re > 0 ? tf_pair((T)0, (T)0) : tf_pair(nan, nan);
    }
    T whole = rint(y.re);
    if (y.im == 0 && whole == y.re && fabs(whole) <= 64) {  // as repeated products, which keep whole numbers whole
        Z found = tf_pair((T)1, (T)0), square = x;
        for (int left = (int)fabs(whole); left; left >>= 1) {
            if (left & 1) found = tf_mul(found, square);
            square = tf_mul(square, square);
        }
        return whole < 0 ? tf_div(tf_pair((T)1, (T)0), found) : found;
    }
    return tf_exp(tf_mul(y, tf_log(x)));
}

// conversion

template <class R, class S> struct tf_converting<R, tf_complex<S>> {
    static __device__ __forceinline__ R from(tf_complex<S> x) {
        if constexpr (tf_of<R>::kind == 'b') return x.re != 0 || x.im != 0;
        else return tf_convert<R>(x.re);
    }
};
template <class R, class T> struct tf_converting<tf_complex<R>, T> {
    static __device__ __forceinline__ tf_complex<R> from(T x) { return tf_pair(tf_convert<R>(x), (R)0); }
};
template <class R, class S> struct tf_converting<tf_complex<R>, tf_complex<S>> {
    static __device__ __forceinline__ tf_complex<R> from(tf_complex<S> x) { return tf_pair((R)x.re, (R)x.im); }
};
