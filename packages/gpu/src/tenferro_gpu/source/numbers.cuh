// Numbers of kernels: one function for each element-wise primitive and what reductions combine with, for booleans,
// integers and floating point. Integers wrap; conversions from floating point saturate.

#define TF template <class T> static __device__ __forceinline__

// NumPy's letter for the kind of a type; the unsigned integer of its width; the unsigned integer in which it wraps.
template <class T> struct tf_of { static const char kind = 'c'; };
#define TF_OF(TYPE, KIND, SAME, WRAP, LOW, HIGH)                                   \
    template <> struct tf_of<TYPE> {                                               \
        static const char kind = KIND;                                             \
        typedef SAME same;                                                         \
        typedef WRAP wrap;                                                         \
        static __device__ __forceinline__ TYPE low() { return LOW; }               \
        static __device__ __forceinline__ TYPE high() { return HIGH; }             \
    };
typedef signed char tf_i1;
typedef unsigned char tf_u1;
typedef unsigned short tf_u2;
typedef unsigned int tf_u4;
typedef long long tf_i8;
typedef unsigned long long tf_u8;
TF_OF(bool, 'b', tf_u1, tf_u4, false, true)
TF_OF(tf_i1, 'i', tf_u1, tf_u4, -128, 127)
TF_OF(short, 'i', tf_u2, tf_u4, -32768, 32767)
TF_OF(int, 'i', tf_u4, tf_u4, -2147483647 - 1, 2147483647)
TF_OF(tf_i8, 'i', tf_u8, tf_u8, -9223372036854775807LL - 1, 9223372036854775807LL)
TF_OF(tf_u1, 'u', tf_u1, tf_u4, 0, 255)
TF_OF(tf_u2, 'u', tf_u2, tf_u4, 0, 65535)
TF_OF(tf_u4, 'u', tf_u4, tf_u4, 0, 4294967295u)
TF_OF(tf_u8, 'u', tf_u8, tf_u8, 0, 18446744073709551615ull)
TF_OF(float, 'f', tf_u4, float, __int_as_float((int)0xff800000u), __int_as_float(0x7f800000))
TF_OF(double, 'f', tf_u8, double, __longlong_as_double((tf_i8)0xfff0000000000000ull),
      __longlong_as_double(0x7ff0000000000000ll))

#define TF_IS(LETTER) (tf_of<T>::kind == LETTER)

static __device__ __forceinline__ bool tf_signbit(float x) { return __float_as_int(x) < 0; }
static __device__ __forceinline__ bool tf_signbit(double x) { return __double_as_longlong(x) < 0; }

// arithmetic

TF T tf_add(T x, T y) {
    if constexpr (TF_IS('b')) return x || y;
    typedef typename tf_of<T>::wrap U;
    return (T)((U)x + (U)y);
}

TF T tf_sub(T x, T y) {
    typedef typename tf_of<T>::wrap U;
    return (T)((U)x - (U)y);
}

TF T tf_mul(T x, T y) {
    if constexpr (TF_IS('b')) return x && y;
    typedef typename tf_of<T>::wrap U;
    return (T)((U)x * (U)y);
}

TF bool tf_is_nan(T x) {
    if constexpr (TF_IS('f')) return x != x;
    return false;
}

TF bool tf_is_inf(T x) {
    if constexpr (TF_IS('f')) return x == tf_of<T>::high() || x == tf_of<T>::low();
    return false;
}

TF bool tf_is_finite(T x) {
    if constexpr (TF_IS('f')) return x > tf_of<T>::low() && x < tf_of<T>::high();
    return true;
}

TF T tf_absorbing_mul(T x, T y) { return tf_mul(x, x != (T)0 || tf_is_finite(y) ? y : (T)0); }

TF T tf_div(T x, T y) { return x / y; }

TF T tf_neg(T x) {
    if constexpr (TF_IS('f')) return -x;
    typedef typename tf_of<T>::wrap U;
    return (T)((U)0 - (U)x);
}

TF T tf_abs(T x) {
    if constexpr (TF_IS('f')) return fabs(x);
    if constexpr (TF_IS('i')) return x < 0 ? tf_neg(x) : x;
    return x;
}

TF T tf_sign(T x) {
    if (tf_is_nan(x)) return x;
    if constexpr (TF_IS('u')) return (T)(x != 0);
    return (T)((x > (T)0) - (x < (T)0));
}

TF T tf_maximum(T x, T y) { return x > y || tf_is_nan(x) ? x : y; }
TF T tf_minimum(T x, T y) { return x < y || tf_is_nan(x) ? x : y; }
TF T tf_clamp(T x, T lo, T hi) { return tf_minimum(tf_maximum(x, lo), hi); }

TF T tf_floor(T x) {
    if constexpr (TF_IS('f')) return floor(x);
    return x;
}

TF T tf_ceil(T x) {
    if constexpr (TF_IS('f')) return ceil(x);
    return x;
}

TF T tf_trunc(T x) {
    if constexpr (TF_IS('f')) return trunc(x);
    return x;
}

TF T tf_round(T x) {
    if constexpr (TF_IS('f')) return rint(x);
    return x;
}

TF T tf_copysign(T x, T y) { return copysign(x, y); }
TF T tf_nextafter(T x, T y) { return nextafter(x, y); }

// Division with remainder: an integer divisor of 0 yields 0, and the least integer divided by -1 is itself.

TF T tf_fmod(T x, T y) {
    if constexpr (TF_IS('f')) return fmod(x, y);
    else {
        if (y == 0) return 0;
        if constexpr (TF_IS('i')) if (y == (T)-1) return 0;
        return (T)(x % y);
    }
}

TF T tf_remainder(T x, T y) {
    T rest = tf_fmod(x, y);
    if constexpr (TF_IS('f')) {
        if (y == 0) return rest;
        if (rest == 0) return copysign((T)0, y);
        return (rest < 0) != (y < 0) ? rest + y : rest;
    }
    if constexpr (TF_IS('i')) return rest != 0 && (rest < 0) != (y < 0) ? tf_add(rest, y) : rest;
    return rest;
}

TF T tf_floor_divide(T x, T y) {
    T rest = tf_fmod(x, y);
    if constexpr (TF_IS('f')) {
        if (y == 0 || tf_is_inf(x) || tf_is_inf(y)) return x / y;
        T quotient = (x - rest) / y;
        if (rest != 0 && (rest < 0) != (y < 0)) quotient -= 1;
        if (quotient == 0) return copysign(quotient, x / y);
        T low = floor(quotient);  // what is left of the fraction is rounding
        return quotient - low > (T)0.5 ? low + 1 : low;
    }
    else {
        if (y == 0) return 0;
        if constexpr (TF_IS('i')) {
            if (y == (T)-1) return tf_neg(x);
            return (T)(x / y - (rest != 0 && (rest < 0) != (y < 0)));
        }
        return (T)(x / y);
    }
}

// The quotient of two indices; division in 64 bits takes several times as long.
static __device__ __forceinline__ tf_i8 tf_quotient(tf_i8 x, tf_i8 y) {
    return (tf_u8)(x | y) >> 32 ? x / y : (tf_i8)((tf_u4)x / (tf_u4)y);
}

// comparison and selection

TF bool tf_eq(T x, T y) { return x == y; }
TF bool tf_ne(T x, T y) { return x != y; }
TF bool tf_lt(T x, T y) { return x < y; }
TF bool tf_le(T x, T y) { return x <= y; }
TF bool tf_gt(T x, T y) { return x > y; }
TF bool tf_ge(T x, T y) { return x >= y; }
TF T tf_select(bool pred, T x, T y) { return pred ? x : y; }

// bits

TF T tf_bitwise_and(T x, T y) { return (T)(x & y); }
TF T tf_bitwise_or(T x, T y) { return (T)(x | y); }
TF T tf_bitwise_xor(T x, T y) { return (T)(x ^ y); }

TF T tf_bitwise_not(T x) {
    if constexpr (TF_IS('b')) return !x;
    return (T)~x;
}

TF T tf_shift_left(T x, T y) {
    typedef typename tf_of<T>::wrap U;
    return (typename tf_of<T>::same)y < 8 * sizeof(T) ? (T)((U)x << y) : (T)0;
}

TF T tf_shift_right(T x, T y) {
    if ((typename tf_of<T>::same)y < 8 * sizeof(T)) return (T)(x >> y);
    return x < 0 ? (T)-1 : (T)0;
}

TF tf_u1 tf_population_count(T x) { return (tf_u1)__popcll((typename tf_of<T>::same)tf_abs(x)); }

// functions

TF T tf_sqrt(T x) { return sqrt(x); }
TF T tf_rsqrt(T x) { return (T)1 / sqrt(x); }
TF T tf_cbrt(T x) { return cbrt(x); }
TF T tf_exp(T x) { return exp(x); }
TF T tf_exp2(T x) { return exp2(x); }
TF T tf_expm1(T x) { return expm1(x); }
TF T tf_log(T x) { return log(x); }
TF T tf_log1p(T x) { return log1p(x); }
TF T tf_log2(T x) { return log2(x); }
TF T tf_log10(T x) { return log10(x); }
TF T tf_sin(T x) { return sin(x); }
TF T tf_cos(T x) { return cos(x); }
TF T tf_tan(T x) { return tan(x); }
TF T tf_asin(T x) { return asin(x); }
TF T tf_acos(T x) { return acos(x); }
TF T tf_atan(T x) { return atan(x); }
TF T tf_sinh(T x) { return sinh(x); }
TF T tf_cosh(T x) { return cosh(x); }
TF T tf_tanh(T x) { return tanh(x); }
TF T tf_asinh(T x) { return asinh(x); }
TF T tf_acosh(T x) { return acosh(x); }
TF T tf_atanh(T x) { return atanh(x); }
TF T tf_atan2(T x, T y) { return atan2(x, y); }
TF T tf_hypot(T x, T y) { return hypot(x, y); }
TF T tf_pow(T x, T y) { return pow(x, y); }
TF T tf_erf(T x) { return erf(x); }
TF T tf_erfc(T x) { return erfc(x); }
TF T tf_lgamma(T x) { return x == tf_of<T>::low() ? x : lgamma(x); }  // as SciPy, not as C

// parts and conversion

TF T tf_conj(T x) { return x; }
TF T tf_real(T x) { return x; }
TF T tf_imag(T x) { return (T)0; }
TF T tf_stop_gradient(T x) { return x; }

template <class R, class T> struct tf_converting {
    static __device__ __forceinline__ R from(T x) {
        if constexpr (tf_of<R>::kind == 'b') return x != (T)0;
        if constexpr (TF_IS('f') && (tf_of<R>::kind == 'i' || tf_of<R>::kind == 'u')) {
            if (x != x) return (R)0;
            if (x >= (T)tf_of<R>::high()) return tf_of<R>::high();  // where it rounds up, what is below it fits
            if (x <= (T)tf_of<R>::low()) return tf_of<R>::low();
        }
        return (R)x;
    }
};

template <class R, class T> static __device__ __forceinline__ R tf_convert(T x) {
    return tf_converting<R, T>::from(x);
}

// initial values of accumulations in each work item
TF T tf_none_add() { return tf_convert<T>(0.0f); }
TF T tf_none_mul() { return tf_convert<T>(1.0f); }
TF T tf_none_maximum() { return tf_of<T>::low(); }
TF T tf_none_minimum() { return tf_of<T>::high(); }
TF T tf_none_bitwise_and() { return tf_bitwise_not((T)0); }
TF T tf_none_bitwise_or() { return (T)0; }
TF T tf_none_bitwise_xor() { return (T)0; }
