// Narrow floating point: the bits of float16 and bfloat16, which are moved, widened to float and rounded from it, to
// nearest, ties to even. The conversions of float16 are written out (after F. Giesen).

struct tf_f2 { tf_u2 bits; };
struct tf_b2 { tf_u2 bits; };
template <> struct tf_of<tf_f2> { static const char kind = 'n'; };
template <> struct tf_of<tf_b2> { static const char kind = 'n'; };

static __device__ __forceinline__ float tf_wide(tf_b2 x) { return __int_as_float((int)((tf_u4)x.bits << 16)); }

static __device__ __forceinline__ float tf_wide(tf_f2 x) {
    const tf_u4 infinite = 0x7c00u << 13;
    tf_u4 size = (tf_u4)(x.bits & 0x7fffu) << 13;
    const tf_u4 exponent = size & infinite;
    size += (127u - 15u) << 23;
    if (exponent == infinite) size += (128u - 16u) << 23;
    if (exponent == 0)  // a subnormal number is normal in float
        size = (tf_u4)__float_as_int(__int_as_float((int)(size + (1u << 23))) - __int_as_float(113 << 23));
    return __int_as_float((int)(size | (tf_u4)(x.bits & 0x8000u) << 16));
}

// A double as a float whose last bit is odd if inexact, so that a second rounding rounds only once.
static __device__ __forceinline__ float tf_to_odd(double x) {
    const float near = (float)x;
    if (x != x || (double)near == x) return near;
    const double back = (double)near;
    const bool beyond = x < 0 ? back < x : back > x;
    return __int_as_float((__float_as_int(near) - (beyond ? 1 : 0)) | 1);
}

template <class R> struct tf_narrowing;
template <> struct tf_narrowing<tf_b2> {
    static __device__ __forceinline__ tf_b2 from(float x) {
        const tf_u4 bits = (tf_u4)__float_as_int(x);
        if (x != x) return tf_b2{(tf_u2)(bits >> 16 | 0x40u)};
        return tf_b2{(tf_u2)((bits + (bits >> 16 & 1u) + 0x7fffu) >> 16)};
    }
};
template <> struct tf_narrowing<tf_f2> {
    static __device__ __forceinline__ tf_f2 from(float x) {
        const tf_u4 bits = (tf_u4)__float_as_int(x), size = bits & 0x7fffffffu;
        // Adding this number shifts the bits of a subnormal one into place, and rounds them.
        const tf_u4 magic = (127u - 15u + 23u - 10u + 1u) << 23;
        tf_u4 found = (size + (size >> 13 & 1u) + ((15u - 127u) << 23) + 0xfffu) >> 13;
        if (size < 113u << 23)
            found = (tf_u4)__float_as_int(__int_as_float((int)size) + __int_as_float((int)magic)) - magic;
        if (size >= (127u + 16u) << 23) found = x != x ? 0x7e00u : 0x7c00u;
        return tf_f2{(tf_u2)(found | bits >> 16 & 0x8000u)};
    }
    static __device__ __forceinline__ tf_f2 from(double x) { return from(tf_to_odd(x)); }
};

template <class R> struct tf_converting<R, tf_f2> {
    static __device__ __forceinline__ R from(tf_f2 x) { return tf_convert<R>(tf_wide(x)); }
};
template <class R> struct tf_converting<R, tf_b2> {
    static __device__ __forceinline__ R from(tf_b2 x) { return tf_convert<R>(tf_wide(x)); }
};
template <class T> struct tf_converting<tf_f2, T> {
    static __device__ __forceinline__ tf_f2 from(T x) {
        if constexpr (sizeof(T) == 8 && tf_of<T>::kind == 'f') return tf_narrowing<tf_f2>::from((double)x);
        else return tf_narrowing<tf_f2>::from(tf_convert<float>(x));
    }
};
template <class T> struct tf_converting<tf_b2, T> {
    static __device__ __forceinline__ tf_b2 from(T x) { return tf_narrowing<tf_b2>::from(tf_convert<float>(x)); }
};

// Overloads that would be ambiguous: both sides narrow, or one of them complex.
template <class T> struct tf_complex;
#define TF_BETWEEN(TO, FROM)                                                       \
    template <> struct tf_converting<TO, FROM> {                                   \
        static __device__ __forceinline__ TO from(FROM x) { return tf_narrowing<TO>::from(tf_wide(x)); } \
    };
#define TF_AND_COMPLEX(NARROW)                                                     \
    template <class S> struct tf_converting<NARROW, tf_complex<S>> {               \
        static __device__ __forceinline__ NARROW from(tf_complex<S> x) { return tf_convert<NARROW>(x.re); } \
    };                                                                             \
    template <class R> struct tf_converting<tf_complex<R>, NARROW> {               \
        static __device__ __forceinline__ tf_complex<R> from(NARROW x) {           \
            return tf_convert<tf_complex<R>>(tf_wide(x));                          \
        }                                                                          \
    };
TF_BETWEEN(tf_f2, tf_f2)
TF_BETWEEN(tf_f2, tf_b2)
TF_BETWEEN(tf_b2, tf_f2)
TF_BETWEEN(tf_b2, tf_b2)
TF_AND_COMPLEX(tf_f2)
TF_AND_COMPLEX(tf_b2)
