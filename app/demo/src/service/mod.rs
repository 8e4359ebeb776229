//! S3's operations over the store.

mod conditions;
mod listing;
mod objects;
mod stream;
mod uploads;

use std::sync::Arc;

use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::dto::*;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{S3, S3Error, S3Request, S3Response, S3Result, s3_error};

use crate::settings::{ACCESS_KEY, SECRET_KEY};
use crate::store::{Store, StoreError};

/// The service over `store`; `anonymous` lets in requests without a signature.
pub(crate) fn service(store: Arc<Store>, anonymous: bool) -> S3Service {
    let mut builder = S3ServiceBuilder::new(Operations { store });
    builder.set_auth(OneKey);
    builder.set_access(Access { anonymous });
    builder.build()
}

/// Knows one access key, and refuses any other as S3 does.
struct OneKey;

#[async_trait::async_trait]
impl S3Auth for OneKey {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        match access_key {
            ACCESS_KEY => Ok(SECRET_KEY.into()),
            _ => Err(s3_error!(InvalidAccessKeyId, "The AWS Access Key Id you provided does not exist in our records.")),
        }
    }
}

struct Access {
    anonymous: bool,
}

#[async_trait::async_trait]
impl S3Access for Access {
    async fn check(&self, cx: &mut S3AccessContext<'_>) -> S3Result<()> {
        match cx.credentials() {
            None if !self.anonymous => Err(s3_error!(AccessDenied, "Requests must be signed.")),
            _ => Ok(()),
        }
    }
}

struct Operations {
    store: Arc<Store>,
}

fn refuse(error: StoreError) -> S3Error {
    match error {
        StoreError::NoBucket(_) => s3_error!(NoSuchBucket, "The specified bucket does not exist"),
        StoreError::BadBucketName(_) => s3_error!(InvalidBucketName),
        StoreError::BucketNotEmpty(_) => s3_error!(BucketNotEmpty),
        StoreError::NoKey => s3_error!(NoSuchKey, "The specified key does not exist."),
        StoreError::NoUpload => s3_error!(NoSuchUpload),
        StoreError::BadPart => s3_error!(InvalidPart),
        StoreError::PartTooSmall => s3_error!(EntityTooSmall),
        StoreError::Precondition => {
            s3_error!(PreconditionFailed, "At least one of the pre-conditions you specified did not hold")
        }
        StoreError::Io(error) => s3_error!(InternalError, "{error}"),
    }
}

#[async_trait::async_trait]
impl S3 for Operations {
    async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        objects::get(&self.store, request.input).map(S3Response::new)
    }

    async fn head_object(&self, request: S3Request<HeadObjectInput>) -> S3Result<S3Response<HeadObjectOutput>> {
        objects::head(&self.store, request.input).map(S3Response::new)
    }

    async fn put_object(&self, request: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        objects::put(&self.store, request.input).await.map(S3Response::new)
    }

    async fn copy_object(&self, request: S3Request<CopyObjectInput>) -> S3Result<S3Response<CopyObjectOutput>> {
        objects::copy(&self.store, request.input).await.map(S3Response::new)
    }

    async fn delete_object(&self, request: S3Request<DeleteObjectInput>) -> S3Result<S3Response<DeleteObjectOutput>> {
        self.store.delete(&request.input.bucket, &request.input.key).map_err(refuse)?;
        Ok(S3Response::with_status(DeleteObjectOutput::default(), http::StatusCode::NO_CONTENT))
    }

    async fn delete_objects(&self, request: S3Request<DeleteObjectsInput>) -> S3Result<S3Response<DeleteObjectsOutput>> {
        objects::delete_several(&self.store, request.input).map(S3Response::new)
    }

    async fn list_objects_v2(&self, request: S3Request<ListObjectsV2Input>) -> S3Result<S3Response<ListObjectsV2Output>> {
        listing::list_v2(&self.store, request.input).map(S3Response::new)
    }

    async fn list_objects(&self, request: S3Request<ListObjectsInput>) -> S3Result<S3Response<ListObjectsOutput>> {
        listing::list_v1(&self.store, request.input).map(S3Response::new)
    }

    async fn list_buckets(&self, _: S3Request<ListBucketsInput>) -> S3Result<S3Response<ListBucketsOutput>> {
        let buckets = self.store.buckets().into_iter().map(|name| Bucket { name: Some(name), ..Default::default() }).collect();
        Ok(S3Response::new(ListBucketsOutput { buckets: Some(buckets), ..Default::default() }))
    }

    async fn head_bucket(&self, request: S3Request<HeadBucketInput>) -> S3Result<S3Response<HeadBucketOutput>> {
        self.store.has_bucket(&request.input.bucket).map_err(refuse)?;
        Ok(S3Response::new(HeadBucketOutput::default()))
    }

    async fn create_bucket(&self, request: S3Request<CreateBucketInput>) -> S3Result<S3Response<CreateBucketOutput>> {
        self.store.create_bucket(&request.input.bucket).map_err(refuse)?;
        Ok(S3Response::new(CreateBucketOutput::default()))
    }

    async fn delete_bucket(&self, request: S3Request<DeleteBucketInput>) -> S3Result<S3Response<DeleteBucketOutput>> {
        self.store.delete_bucket(&request.input.bucket).map_err(refuse)?;
        Ok(S3Response::with_status(DeleteBucketOutput::default(), http::StatusCode::NO_CONTENT))
    }

    async fn get_bucket_location(
        &self,
        request: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        self.store.has_bucket(&request.input.bucket).map_err(refuse)?;
        Ok(S3Response::new(GetBucketLocationOutput::default()))
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        uploads::create(&self.store, request.input).map(S3Response::new)
    }

    async fn upload_part(&self, request: S3Request<UploadPartInput>) -> S3Result<S3Response<UploadPartOutput>> {
        uploads::put_part(&self.store, request.input).await.map(S3Response::new)
    }

    async fn list_parts(&self, request: S3Request<ListPartsInput>) -> S3Result<S3Response<ListPartsOutput>> {
        uploads::list_parts(&self.store, request.input).map(S3Response::new)
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        uploads::complete(&self.store, request.input).await.map(S3Response::new)
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        self.store.end_upload(&request.input.upload_id).map_err(refuse)?;
        Ok(S3Response::with_status(AbortMultipartUploadOutput::default(), http::StatusCode::NO_CONTENT))
    }
}
