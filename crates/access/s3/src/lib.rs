//! The S3 gateway: any S3 client reads and writes through Forebay.
